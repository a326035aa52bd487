"""A segment: a file of batches, its indexes, and the aborted transactions that ended in it."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.files import INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, file_name, read_exactly
from kohort.log.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from kohort.log.scan import ScannedBatch, scan
from kohort.log.transaction_index import TransactionIndex

__all__ = ["Located", "Segment"]

_MAX_RELATIVE: Final = 2**31 - 1
_INDEX_ENTRY: Final = 8
_TIME_INDEX_ENTRY: Final = 12
_UNKNOWN: Final = -2

_STEP: Final = struct.Struct(">qi11xi")
"""Of a batch's header: base offset, length, last offset delta; enough to go to the next one."""

_PREFIX: Final = 12
_WINDOW: Final = 4096


class Located(NamedTuple):
    """Where a batch lies: its position and size in bytes, and its base offset."""

    position: int
    size: int
    base_offset: int


class Segment:
    """Batches from `base_offset` on.

    Files are opened when they are used: a segment that nobody reads costs no descriptor. The segment that is written
    to keeps its log open, and its indexes once they have an entry.

    Attributes:
        directory, base_offset: where it is, and its name there; `suffix` comes after the files' names.
        size: bytes of batches.
        created: when this process began to write it (ms since 1970).
        dirty: whether it has what isn't flushed yet.
    """

    __slots__ = (
        "_aborted", "_fd", "_index", "_max_offset", "_max_timestamp", "_since_index", "_time_index", "base_offset",
        "created", "directory", "dirty", "first_timestamp", "size", "suffix",
    )  # fmt: skip

    def __init__(self, directory: Path, base_offset: int, size: int, now: int, suffix: str = "") -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.created = now
        self.suffix = suffix
        self.dirty = False
        self.first_timestamp = NO_TIMESTAMP
        self._fd = -1
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: TransactionIndex | None = None
        self._max_timestamp = _UNKNOWN if size else NO_TIMESTAMP
        self._max_offset = base_offset
        self._since_index = 0

    @classmethod
    def create(cls, directory: Path, base_offset: int, now: int, suffix: str = "") -> Segment:
        """A new, empty segment. What lies in its place is no log: it is cut."""
        segment = cls(directory, base_offset, 0, now, suffix)
        segment._fd = os.open(segment.path(LOG), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        segment._index = OffsetIndex(segment.path(INDEX), load=False)
        segment._time_index = TimeIndex(segment.path(TIME_INDEX), load=False)
        segment._aborted = TransactionIndex(segment.path(TXN_INDEX), load=False)
        return segment

    def path(self, suffix: str) -> Path:
        """One of its files, by what comes after the offset in the name."""
        return self.directory / (file_name(self.base_offset, suffix) + self.suffix)

    @property
    def fd(self) -> int:
        """The descriptor of the log."""
        if self._fd < 0:
            self._fd = os.open(self.path(LOG), os.O_RDWR)
        return self._fd

    @property
    def is_open(self) -> bool:
        """Whether it has a descriptor to give back."""
        return self._fd >= 0

    @property
    def index(self) -> OffsetIndex:
        """Offset to position."""
        if self._index is None:
            self._index = OffsetIndex(self.path(INDEX), load=True)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        """Timestamp to offset."""
        if self._time_index is None:
            self._time_index = TimeIndex(self.path(TIME_INDEX), load=True)
        return self._time_index

    @property
    def aborted(self) -> TransactionIndex:
        """The aborted transactions whose markers are here."""
        if self._aborted is None:
            self._aborted = TransactionIndex(self.path(TXN_INDEX), load=True)
        return self._aborted

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of its records, ms since 1970; -1 if none has any."""
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, offset = self.time_index.last
            self._max_offset = self.base_offset + offset
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the first batch with that timestamp."""
        return self._max_offset if self.max_timestamp >= 0 else self.base_offset

    @property
    def age_mark(self) -> int:
        """What retention goes by: the latest timestamp or, where records have none, the file's last change (ms)."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.path(LOG).stat().st_mtime_ns // 1_000_000

    # Writing.

    def has_room(self, size: int, last_offset: int, segment_bytes: int, index_bytes: int) -> bool:
        """Whether a batch that ends with `last_offset` fits, in bytes and in what an index can say."""
        return (
            self.size + size <= segment_bytes
            and last_offset - self.base_offset <= _MAX_RELATIVE
            and len(self.index) < index_bytes // _INDEX_ENTRY
            and len(self.time_index) < index_bytes // _TIME_INDEX_ENTRY - 1
        )

    def append(
        self, buffers: Sequence[bytes | memoryview], size: int, last_offset: int, max_timestamp: int, interval: int
    ) -> None:
        """Write the buffers of a batch (of `size` bytes) and index it, if the last entry is `interval` bytes back.

        Raises:
            OSError: it isn't written, and nothing of it is left in the file.
        """
        position = self.size
        fd = self.fd
        try:
            if os.pwritev(fd, buffers, position) != size:
                self._finish(buffers, size)
        except OSError:
            os.ftruncate(fd, position)
            raise
        if not position:
            self._begin(max_timestamp)
        self.size = position + size
        self.dirty = True
        self.note(position, size, last_offset, max_timestamp, interval)

    def _finish(self, buffers: Sequence[bytes | memoryview], size: int) -> None:
        """A write that fell short: the disk is full or nearly so. Try the whole once more, and say why it fails."""
        if os.pwritev(self.fd, buffers, self.size) != size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _begin(self, first_timestamp: int) -> None:
        self.first_timestamp = first_timestamp
        self.index.open()
        self.time_index.open()

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Index a batch that lies at `position`."""
        if max_timestamp > self.max_timestamp:
            self._max_timestamp, self._max_offset = max_timestamp, last_offset
        if self._since_index > interval:
            self.index.append(last_offset - self.base_offset, position)
            self.time_index.append(self._max_timestamp, self._max_offset - self.base_offset)
            self._since_index = 0
        self._since_index += size

    def seal(self) -> None:
        """Complete the files of a segment that isn't written to any more: the last entry is the latest timestamp."""
        self.index.open()
        if self.max_timestamp >= 0:
            self.time_index.append(self._max_timestamp, self._max_offset - self.base_offset)
        self.time_index.open()

    def sync(self) -> None:
        """Put all files on the disk. It has descriptors of its own, so it may run in any thread."""
        for suffix in SEGMENT_SUFFIXES:
            try:
                fd = os.open(self.path(suffix), os.O_RDONLY)
            except FileNotFoundError:
                continue  # never written, or deleted since
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        self.dirty = False

    # Reading.

    def locate(self, offset: int) -> Located | None:
        """The first batch that ends with `offset` or later.

        Raises:
            OSError: the file can't be read, or isn't what it was.
        """
        position, end, fd = self.index.position_before(offset - self.base_offset), self.size, self.fd
        while position < end:
            window = read_exactly(fd, min(_WINDOW, end - position), position)
            at, last = 0, len(window) - _STEP.size
            while at <= last:
                base, length, delta = _STEP.unpack_from(window, at)
                if base + delta >= offset:
                    return Located(position + at, length + _PREFIX, base)
                if length <= 0:
                    break
                at += length + _PREFIX
            if not at or length <= 0:
                raise OSError(errno.EIO, f"no batch at byte {position + at} of {self.path(LOG)}")
            position += at
        return None

    def read(self, offset: int, max_bytes: int, up_to: int | None, min_one: bool) -> bytes | None:
        """Batches from the one with `offset` on; None if the segment has none so late.

        Args:
            offset, max_bytes, min_one: as in `Log.read`.
            up_to: offset of the first batch that isn't wanted; None for all.
        """
        first = self.locate(offset)
        if first is None:
            return None
        position, size, _ = first
        end = self.size
        if up_to is not None and (limit := self.locate(up_to)) is not None:
            end = limit.position if limit.base_offset >= up_to else limit.position + limit.size
        if size > max_bytes:
            if not min_one:
                return b""
            max_bytes = size
        if end <= position:
            return b""
        return read_exactly(self.fd, min(max_bytes, end - position), position)

    def batches(self, offset: int) -> Iterator[ScannedBatch]:
        """The batches from the one with `offset` on."""
        first = self.locate(offset)
        return iter(()) if first is None else scan(self.fd, first.position, self.size, check=False)

    # Files.

    def reindex(self) -> None:
        """Empty the indexes, to be filled by `note`."""
        if self.size or self.path(INDEX).exists():
            self.index.truncate(0)
            self.time_index.truncate(0)
        self.aborted.reset()
        self._max_timestamp, self._max_offset, self._since_index = NO_TIMESTAMP, self.base_offset, 0
        self.dirty = True

    def cut(self, position: int) -> None:
        """Cut the log, of which nothing is indexed from there on."""
        os.ftruncate(self.fd, position)
        self.size = position

    def release(self) -> None:
        """Close the files and forget the indexes; they are opened and read again when they are needed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._time_index is not None:
            _ = self.max_timestamp  # asked for at every look at what may be deleted
            self._time_index.close()
        if self._index is not None:
            self._index.close()
        self._index = self._time_index = None

    def rename(self, suffix: str) -> None:
        """Let `suffix` come after the files' names; the log is renamed last."""
        paths = [self.path(kind) for kind in SEGMENT_SUFFIXES]
        self.suffix = suffix
        for kind, path in zip(SEGMENT_SUFFIXES, paths, strict=True):
            if path.exists():
                path.replace(self.path(kind))
        if self._aborted is not None:
            self._aborted.path = self.path(TXN_INDEX)

    def delete(self) -> None:
        """Remove the files, the log first: without it the others mean nothing, and go when the log is opened."""
        self.release()
        for suffix in reversed(SEGMENT_SUFFIXES):
            self.path(suffix).unlink(missing_ok=True)
