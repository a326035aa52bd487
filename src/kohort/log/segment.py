"""A segment: a log file, its indexes, and its transaction index."""

from __future__ import annotations

import errno
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.damage import Damage, DamageKind, Range, Report, tell
from kohort.log.files import INDEX, LOG, TIME_INDEX, read_exactly
from kohort.log.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from kohort.log.salvage import Gap, batches_and_gaps, stretches
from kohort.log.scan import ScannedBatch, claimed_end, scan
from kohort.log.segment_files import SegmentFiles
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, MAGIC, MAX_OFFSET

_MAX_RELATIVE: Final = 2**31 - 1
_INDEX_ENTRY: Final = 8
_TIME_INDEX_ENTRY: Final = 12
_UNKNOWN: Final = -2

_BATCH_BOUNDS: Final = struct.Struct(">qi4xb6xi")
"""Header fields that lead to the next batch: base offset, length, magic, last offset delta."""

_START: Final = struct.Struct(">qi")
_INDEXED: Final = struct.Struct(">qi4xb6xi8xq")
"""Those, and the latest timestamp."""

_CHUNK: Final = 1 << 20
_LARGE: Final = 16 * 1024

_MAX_TIMESTAMP: Final = struct.Struct(">35xq")

INDEX_INTERVAL: Final = 4096
"""Bytes between two entries of an index that is made anew."""

_PREFIX: Final = 12
_LEAST_LENGTH: Final = HEADER_SIZE - _PREFIX
_WINDOW: Final = 4096


class Located(NamedTuple):
    """A batch's position and size in bytes, and its base offset."""

    position: int
    size: int
    base_offset: int


class DamagedSegmentError(CorruptRecordError):
    """A batch where the next one can't be found from.

    Attributes:
        segment: that has it.
        expected: the offset after the batches before it.
    """

    def __init__(self, segment: Segment, position: int, expected: int) -> None:
        name = segment.path(LOG).name
        super().__init__(None, position, f"there is no whole batch after offset {expected} in {name}")
        self.segment = segment
        self.expected = expected


class Segment(SegmentFiles):
    """Batches from `base_offset` on.

    A segment that isn't read has no descriptor. The active segment keeps its log open, and its indexes once they have
    an entry, unless descriptors are short. An entry of an index is believed only if the log agrees: else `report` is
    told, and the indexes are made anew.

    Attributes:
        created: when this process started to write it (ms since 1970).
        first_timestamp: of its first batch, if it is known: else -1.
        report: hears of wrong indexes and damages.
    """

    __slots__ = (
        "_gaps",
        "_max_offset",
        "_max_timestamp",
        "_since_index",
        "created",
        "first_timestamp",
        "report",
    )  # fmt: skip

    def __init__(self, directory: Path, base_offset: int, size: int, now: int, suffix: str = "") -> None:
        super().__init__(directory, base_offset, size, suffix)
        self.created = now
        self.first_timestamp = NO_TIMESTAMP
        self.report: Report = tell
        self._gaps: dict[int, Gap] = {}
        self._max_timestamp = _UNKNOWN if size else NO_TIMESTAMP
        self._max_offset = base_offset
        self._since_index = 0

    @classmethod
    def new(cls, directory: Path, base_offset: int, now: int, suffix: str = "") -> Segment:
        """Creates an empty segment; an existing log is truncated."""
        return cls(directory, base_offset, 0, now, suffix).create()

    @property
    def time_index(self) -> TimeIndex:
        times = self._time_index
        if times is None:
            times = super().time_index
            if not times.ascending:
                self.reindex(f"{self.path(TIME_INDEX).name} says that times don't ascend")
            _ = self.max_timestamp  # retention reads it, also when the files are closed
        return times

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of its records, ms since 1970; -1 if none has any."""
        if self._max_timestamp == _UNKNOWN:
            timestamp, offset = self.time_index.last
            if timestamp < 0 or self._has_time(timestamp, offset):
                self._max_timestamp, self._max_offset = timestamp, self.base_offset + offset
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the first batch with that timestamp."""
        return self._max_offset if self.max_timestamp >= 0 else self.base_offset

    @property
    def retention_timestamp(self) -> int:
        """The time that retention uses: the latest timestamp or, without timestamps, the file's last change (ms)."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.path(LOG).stat().st_mtime_ns // 1_000_000

    # Writing

    def has_room(self, size: int, last_offset: int, segment_bytes: int, index_bytes: int) -> bool:
        """Whether a batch fits: by bytes, relative offset, and index entries."""
        return (
            self.size + size <= segment_bytes
            and last_offset - self.base_offset <= _MAX_RELATIVE
            and len(self.index) < index_bytes // _INDEX_ENTRY
            and len(self.time_index) < index_bytes // _TIME_INDEX_ENTRY - 1
        )

    def append(
        self, buffers: Sequence[bytes | memoryview], size: int, last_offset: int, max_timestamp: int, interval: int
    ) -> None:
        """Appends a batch of `size` bytes, and indexes it if the last entry is `interval` bytes back.

        Raises:
            OSError: the batch isn't written; the file is unchanged.
        """
        position = self.size
        fd = self.fd
        try:
            if os.pwritev(fd, buffers, position) != size:
                self._retry_write(buffers, size)
        except OSError:
            os.ftruncate(fd, position)
            raise
        if not position:
            self._open_indexes(max_timestamp)
        self.size = position + size
        self.unflushed = True
        self.index_batch(position, size, last_offset, max_timestamp, interval)

    def _retry_write(self, buffers: Sequence[bytes | memoryview], size: int) -> None:
        """Retries a short write once, which usually gives the error of a full disk."""
        if os.pwritev(self.fd, buffers, self.size) != size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open_indexes(self, first_timestamp: int) -> None:
        self.first_timestamp = first_timestamp
        self.index.open()
        self.time_index.open()

    def index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        if max_timestamp > self.max_timestamp:
            self._max_timestamp, self._max_offset = max_timestamp, last_offset
        if self._since_index > interval:
            self.index.append(last_offset - self.base_offset, position)
            self.time_index.append(self._max_timestamp, self._max_offset - self.base_offset)
            self._since_index = 0
        self._since_index += size

    def seal(self) -> None:
        """Completes the files of a segment that is rolled: the last entry of the time index is the latest timestamp."""
        self.index.open()
        if self.max_timestamp >= 0:
            self.time_index.append(self._max_timestamp, self._max_offset - self.base_offset)
        self.time_index.open()

    # Reading

    def locate(self, offset: int) -> Located | None:
        """Finds the first batch whose last offset is `offset` or later.

        Raises:
            OSError: the file can't be read, or was changed.
            DamagedSegmentError: what is on the way isn't a batch.
        """
        found = self._search(offset)
        return found if found.size else None

    def note_gap(self, gap: Gap, end_offset: int | None = None) -> None:
        """Reports damaged bytes, once. Nothing is changed: readers go past them if they ask for what comes after.

        Args:
            end_offset: the offset after the segment, if it is known.
        """
        if gap.position in self._gaps:
            return
        self._gaps[gap.position] = gap
        end = gap.following
        if end is None:
            claimed = claimed_end(self.fd, gap.position, self.size, gap.least)
            end = claimed if end_offset is None else end_offset
        lost = (Range(gap.least, end),) if end > gap.least else ()
        reason = f"byte {gap.position} of {self.path(LOG).name}: {gap.reason}"
        size = gap.end - gap.position
        self.report(Damage(DamageKind.DAMAGED_BATCH, self.directory, reason, lost, size, to_mend=True))

    def end_offset(self) -> int:
        """Returns the offset after the last batch; raises as `locate`."""
        if self._index is None and (entry := OffsetIndex.last_entry(self.path(INDEX))) is not None:
            found = self._last_batches(entry)
            if found is not None:
                return found
        return self._search(MAX_OFFSET + 1).base_offset

    def _search(self, offset: int) -> Located:
        """As `locate`; what is located has the size 0 at the segment's end."""
        try:
            return self._search_index(offset)
        except DamagedSegmentError as error:
            damage = error
        while True:
            gap = self._gap_at(damage)
            if gap.following is None or offset < gap.following:
                if offset <= MAX_OFFSET:
                    self.note_gap(gap)
                raise damage
            self.note_gap(gap)
            try:
                found = self._walk(offset, gap.end, None, gap.following)
            except DamagedSegmentError as error:
                damage = error
            else:
                assert found is not None
                return found

    def _gap_at(self, damage: DamagedSegmentError) -> Gap:
        gap = self._gaps.get(damage.position)
        if gap is None:
            found = batches_and_gaps(
                self.fd, damage.position, self.size, base_offset=self.base_offset, least=damage.expected
            )
            whole = Gap(damage.position, self.size, damage.expected, None, damage.reason)
            gap = next((item for item in found if isinstance(item, Gap)), whole)
        return gap

    def _search_index(self, offset: int) -> Located:
        index = self.index
        entry = bisect_right(index.offsets, min(offset - self.base_offset, _MAX_RELATIVE)) - 1
        if entry < 0:
            found = self._walk(offset, 0, None, self.base_offset)
            assert found is not None
            return found
        position, last = index.positions[entry], self.base_offset + index.offsets[entry]
        # Entries that aren't in order may lead beyond the offset.
        found = self._walk(offset, position, last, last) if position >= 0 and last <= offset else None
        if found is not None:
            return found
        self.reindex(f"{self.path(INDEX).name} says that the batch with offset {last} is at byte {position}")
        return self._search(offset)

    def _last_batches(self, entry: tuple[int, int]) -> int | None:
        """The offset after the last batch, by the last entry of the index; None if that isn't enough."""
        last = self.base_offset + entry[0]
        try:
            found = self._walk(MAX_OFFSET + 1, entry[1], last, last)
        except DamagedSegmentError:
            return None
        return None if found is None else found.base_offset

    def _walk(self, offset: int, position: int, last_offset: int | None, expected: int) -> Located | None:
        """Goes from batch to batch, from a position on; what is located has the size 0 at the segment's end.

        Args:
            last_offset: of the first batch, as the index says; None is returned if that is wrong.
            expected: the least last offset of the first batch.
        """
        end, fd = self.size, self.fd
        while position < end:
            window = read_exactly(fd, min(_WINDOW, end - position), position)
            at, final = 0, len(window) - _BATCH_BOUNDS.size
            while at <= final:
                base, length, magic, delta = _BATCH_BOUNDS.unpack_from(window, at)
                last = base + delta
                if last_offset is not None:
                    if magic != MAGIC or last != last_offset:
                        return None
                    last_offset = None
                size = length + _PREFIX
                if magic != MAGIC or length < _LEAST_LENGTH or last < expected or position + at + size > end:
                    raise DamagedSegmentError(self, position + at, expected)
                if last >= offset:
                    # The checksum doesn't cover the base offset: if it skips some, the next batch has to be after it.
                    if base > offset and not self._is_followed(position + at + size, last):
                        raise DamagedSegmentError(self, position + at, expected)
                    return Located(position + at, size, base)
                at += size
                expected = last + 1
            if not at:
                if last_offset is not None:
                    return None
                raise DamagedSegmentError(self, position, expected)
            position += at
        return None if last_offset is not None else Located(end, 0, expected)

    def _is_followed(self, position: int, last: int) -> bool:
        """Whether what is at a position comes after the last offset of a batch; also if nothing is there."""
        if self.size - position < _PREFIX:
            return True
        base, _ = _START.unpack(read_exactly(self.fd, _START.size, position))
        return bool(base > last)

    def offset_after(self, position: int) -> int | None:
        """Returns an offset after the batches before a position, by the index; None if it has none.

        Raises:
            OSError, DamagedSegmentError: as of `locate`.
        """
        while True:
            index = self.index
            entry = bisect_left(index.positions, position)
            if entry == len(index):
                return None
            at, last = index.positions[entry], self.base_offset + index.offsets[entry]
            if at >= position and self._walk(last, at, last, last) is not None:
                return last + 1
            self.reindex(f"{self.path(INDEX).name} says that the batch with offset {last} is at byte {at}")

    def offset_before(self, timestamp: int) -> int:
        """Returns an offset before which no record is as late as `timestamp` (ms since 1970); raises as `locate`."""
        times = self.time_index
        entry = bisect_left(times.timestamps, timestamp) - 1
        if entry < 0:
            return self.base_offset
        if self._has_time(times.timestamps[entry], times.offsets[entry]):
            return self.base_offset + times.offsets[entry]
        return self.base_offset + self.time_index.offset_before(timestamp)

    def _has_time(self, timestamp: int, relative: int) -> bool:
        """Whether an entry of the time index agrees with the log; if not, the indexes are made anew."""
        try:
            found = self.locate(self.base_offset + relative)
        except DamagedSegmentError:
            return True  # what reads the batches there says so
        if found is not None:
            (latest,) = _MAX_TIMESTAMP.unpack(read_exactly(self.fd, _MAX_TIMESTAMP.size, found.position))
            if latest == timestamp:
                return True
        self.reindex(
            f"{self.path(TIME_INDEX).name} says that the batch with offset {self.base_offset + relative} "
            f"has the time {timestamp}"
        )
        return False

    def reindex(self, reason: str) -> None:
        """Makes offset index and time index anew from the log's valid batches, as an entry is wrong.

        Args:
            reason: what the entry says, for the report.

        Raises:
            OSError: a file can't be read or written.
        """
        self.report(Damage(DamageKind.WRONG_INDEX, self.directory, f"{reason}, but the log has no such batch there"))
        self.make_indexes()

    def make_indexes(self) -> None:
        """Makes offset index and time index anew from the log's valid batches; raises as `reindex`."""
        self._max_timestamp, self._max_offset, self._since_index = NO_TIMESTAMP, self.base_offset, 0
        self.index.clear()
        self.time_index.clear()
        position = self._index_headers()
        # From a damage on, checksums say what is a batch.
        for run in stretches(self.fd, position, self.size, base_offset=self.base_offset, least=self.base_offset):
            for header, _, at in scan(self.fd, run.position, run.position + run.size, check=False):
                self.index_batch(at, header.size, header.last_offset, header.max_timestamp, INDEX_INTERVAL)
        if self.max_timestamp >= 0:
            self.time_index.append(self._max_timestamp, self._max_offset - self.base_offset)
        self.unflushed = True

    def _index_headers(self) -> int:
        """Indexes the batches up to the first damage, by their headers alone; returns the position after them.

        A segment may have millions of batches, and everybody waits meanwhile.
        """
        entries, times = array("i"), list[tuple[int, int]]()
        position = self._walk_headers(entries, times)
        self.index.extend(entries)
        self.time_index.extend(times)
        return position

    def _walk_headers(self, entries: array[int], times: list[tuple[int, int]]) -> int:
        position, end, fd, expected = 0, self.size, self.fd, self.base_offset
        latest, indexed, since, size = NO_TIMESTAMP, NO_TIMESTAMP, 0, 0
        while position < end:
            # Of large batches the headers alone are read.
            room = _CHUNK if size < _LARGE else _INDEXED.size
            window = read_exactly(fd, min(room, end - position), position)
            at, final = 0, len(window) - _INDEXED.size
            while at <= final:
                base, length, magic, delta, timestamp = _INDEXED.unpack_from(window, at)
                size = length + _PREFIX
                if (
                    magic != MAGIC
                    or length < _LEAST_LENGTH
                    or base < expected
                    or delta < 0
                    or base + delta - self.base_offset > _MAX_RELATIVE
                    or position + at + size > end
                ):
                    return position + at
                expected = base + delta + 1
                if timestamp > latest:
                    latest = timestamp
                    self._max_timestamp, self._max_offset = timestamp, expected - 1
                if since > INDEX_INTERVAL:
                    entries.append(expected - 1 - self.base_offset)
                    entries.append(position + at)
                    if latest > indexed:
                        indexed = latest
                        times.append((latest, self._max_offset - self.base_offset))
                    since = 0
                since += size
                at += size
                self._since_index = since
            if not at:
                break
            position += at
        return position

    def read(self, offset: int, max_bytes: int, up_to: int | None, min_one: bool) -> bytes | None:
        """Reads batches from the one with `offset` on; None if the segment has none.

        Args:
            offset, max_bytes, min_one: as in `Log.read`.
            up_to: reading ends before this offset; None for all.
        """
        first = self.locate(offset)
        if first is None:
            return None
        position, size, _ = first
        if (gap := self._gaps.get(position)) is not None:
            raise DamagedSegmentError(self, position, gap.least)
        end = self.size
        if up_to is not None and (limit := self.locate(up_to)) is not None:
            end = limit.position if limit.base_offset >= up_to else limit.position + limit.size
        if size > max_bytes:
            if not min_one:
                return b""
            max_bytes = size
        for damaged in self._gaps:
            if position < damaged < end:
                end = damaged
        if end <= position:
            return b""
        return read_exactly(self.fd, min(max_bytes, end - position), position)

    def batches(self, offset: int) -> Iterator[ScannedBatch]:
        """Yields the batches from the one with `offset` on; raises as `locate`."""
        first = self.locate(offset)
        if first is not None:
            expected = first.base_offset
            try:
                for batch in scan(self.fd, first.position, self.size, check=False):
                    expected = batch.header.next_offset
                    yield batch
            except CorruptRecordError as error:
                raise DamagedSegmentError(self, error.position, expected) from error

    # Files

    def reset_indexes(self) -> None:
        """Empties the indexes; `index_batch` fills them again."""
        self._max_timestamp, self._max_offset, self._since_index = NO_TIMESTAMP, self.base_offset, 0
        if self.size or self.path(INDEX).exists():
            self.index.clear()
            self.time_index.clear()
        self.aborted.reset()
        self.unflushed = True

    def truncate(self, position: int) -> None:
        """Truncates the log, which must not be indexed from `position` on."""
        os.ftruncate(self.fd, position)
        self.size = position
        self._gaps.clear()
