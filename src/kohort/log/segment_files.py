"""The files of a segment: its log, its indexes, and its transaction index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from kohort.log.descriptors import STARVED, descriptors, open_file
from kohort.log.files import INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, file_name
from kohort.log.index import OffsetIndex, TimeIndex
from kohort.log.transaction_index import TransactionIndex


class SegmentFiles:
    """Files by the segment's base offset. They are opened on use, and closed again where descriptors are short.

    Attributes:
        directory, base_offset: its directory, and its files' name; `suffix` follows the names.
        size: bytes of batches.
        unflushed: whether it has data that isn't flushed.
    """

    __slots__ = (
        "_aborted",
        "_fd",
        "_index",
        "_time_index",
        "base_offset",
        "directory",
        "size",
        "suffix",
        "unflushed",
    )  # fmt: skip

    def __init__(self, directory: Path, base_offset: int, size: int, suffix: str) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.suffix = suffix
        self.unflushed = False
        self._fd = -1
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: TransactionIndex | None = None

    def create(self) -> Self:
        """Creates empty files; an existing log is truncated."""
        self._fd = open_file(self.path(LOG), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        descriptors.opened(self)
        self._index = OffsetIndex(self.path(INDEX), load=False, owner=self)
        self._time_index = TimeIndex(self.path(TIME_INDEX), load=False, owner=self)
        self._aborted = TransactionIndex(self.path(TXN_INDEX), load=False)
        return self

    def path(self, suffix: str) -> Path:
        return self.directory / (file_name(self.base_offset, suffix) + self.suffix)

    @property
    def fd(self) -> int:
        """The log's descriptor; opens the file."""
        if self._fd < 0:
            self._fd = open_file(self.path(LOG), os.O_RDWR)
            descriptors.opened(self)
        return self._fd

    def duplicate(self) -> int:
        """Returns a descriptor of its own for the log; may be called in any thread.

        Raises:
            OSError: there is none.
        """
        with descriptors.lock:
            if self._fd >= 0:
                try:
                    return os.dup(self._fd)
                except OSError as error:
                    if error.errno not in STARVED:
                        raise
        return open_file(self.path(LOG), os.O_RDWR)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self.path(INDEX), load=True, owner=self)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self.path(TIME_INDEX), load=True, owner=self)
        return self._time_index

    @property
    def aborted(self) -> TransactionIndex:
        """The aborted transactions whose markers are in the segment."""
        if self._aborted is None:
            self._aborted = TransactionIndex(self.path(TXN_INDEX), load=True)
        return self._aborted

    def sync(self) -> None:
        """Syncs all files to the disk, with descriptors of its own, so that it may run in any thread."""
        for suffix in SEGMENT_SUFFIXES:
            try:
                fd = open_file(self.path(suffix), os.O_RDONLY)
            except FileNotFoundError:
                continue  # never written, or deleted since
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        self.unflushed = False

    def release(self) -> None:
        """Closes the files and drops the indexes; they are opened and read again on use."""
        with descriptors.lock:
            descriptors.closed(self)
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            if self._time_index is not None:
                self._time_index.close()
            if self._index is not None:
                self._index.close()
            self._index = self._time_index = None

    def rename(self, suffix: str) -> None:
        """Renames the files to end in `suffix`, the log last."""
        paths = [self.path(kind) for kind in SEGMENT_SUFFIXES]
        self.suffix = suffix
        for kind, path in zip(SEGMENT_SUFFIXES, paths, strict=True):
            if path.exists():
                path.replace(self.path(kind))
        if self._aborted is not None:
            self._aborted.path = self.path(TXN_INDEX)

    def delete(self) -> None:
        """Deletes the files, the log first: without it, opening the log deletes the others."""
        self.release()
        for suffix in reversed(SEGMENT_SUFFIXES):
            self.path(suffix).unlink(missing_ok=True)
