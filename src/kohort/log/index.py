"""The sparse indexes of a segment, in Kafka's formats: offset to position, and timestamp to offset.

They are in memory while their segment is in use, and every entry is appended to the file as well. Kafka preallocates
these files and truncates them when a segment is closed; here they have only the used bytes. Offsets are relative to the
segment's base offset.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kohort.log.descriptors import Holder, open_file
from kohort.log.files import read_exactly, write_at

NO_TIMESTAMP: Final = -1

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


class _IndexFile:
    """A file of entries of one size, opened by the first write; `owner` has it open."""

    __slots__ = ("_fd", "_owner", "path")

    def __init__(self, path: Path, owner: Holder | None) -> None:
        self.path = path
        self._owner = owner
        self._fd = -1

    def open(self) -> int:
        """Returns the descriptor; creates the file if it doesn't exist."""
        if self._fd < 0:
            self._fd = open_file(self.path, os.O_RDWR | os.O_CREAT, keep=self._owner)
        return self._fd

    def read(self, entry_size: int) -> bytes:
        """Reads all complete entries."""
        try:
            fd = open_file(self.path, os.O_RDONLY, keep=self._owner)
        except FileNotFoundError:
            return b""
        try:
            size = os.fstat(fd).st_size
            return read_exactly(fd, size - size % entry_size, 0)
        finally:
            os.close(fd)

    def resize(self, size: int) -> None:
        os.ftruncate(self.open(), size)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class OffsetIndex(_IndexFile):
    """Maps last offsets of batches to their positions in bytes; an entry every index.interval.bytes."""

    __slots__ = ("offsets", "positions")

    def __init__(self, path: Path, *, load: bool, owner: Holder | None = None) -> None:
        super().__init__(path, owner)
        pairs = array("i", self.read(_OFFSET_ENTRY.size) if load else b"")
        if sys.byteorder == "little":
            pairs.byteswap()
        self.offsets, self.positions = pairs[::2], pairs[1::2]
        # A file that Kafka preallocated and didn't truncate ends in zeros.
        while self.offsets and not self.offsets[-1] and not self.positions[-1]:
            del self.offsets[-1], self.positions[-1]

    @staticmethod
    def last_entry(path: Path) -> tuple[int, int] | None:
        """Reads the last entry of a file alone: offset and position; None where that makes no sense."""
        try:
            fd = open_file(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            entries = os.fstat(fd).st_size // _OFFSET_ENTRY.size
            if not entries:
                return None
            offset, position = _OFFSET_ENTRY.unpack(
                read_exactly(fd, _OFFSET_ENTRY.size, (entries - 1) * _OFFSET_ENTRY.size)
            )
        finally:
            os.close(fd)
        return (offset, position) if offset >= 0 and position >= 0 and offset + position > 0 else None

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, offset: int, position: int) -> None:
        """Adds the batch at `position`, whose last offset is `offset`."""
        write_at(self.open(), _OFFSET_ENTRY.pack(offset, position), len(self.offsets) * _OFFSET_ENTRY.size)
        self.offsets.append(offset)
        self.positions.append(position)

    def extend(self, entries: array[int]) -> None:
        """Adds entries, offset and position in turn, with one write."""
        packed = entries[:]
        if sys.byteorder == "little":
            packed.byteswap()
        write_at(self.open(), packed.tobytes(), len(self.offsets) * _OFFSET_ENTRY.size)
        self.offsets += entries[::2]
        self.positions += entries[1::2]

    def position_before(self, offset: int) -> int:
        """Returns a position at or before the batch with `offset`."""
        entry = bisect_right(self.offsets, offset)
        return self.positions[entry - 1] if entry else 0

    def clear(self) -> None:
        """Removes all entries."""
        del self.offsets[:], self.positions[:]
        self.resize(0)


class TimeIndex(_IndexFile):
    """Maps the largest timestamp so far to the last offset of its batch; timestamps ascend.

    Attributes:
        ascending: whether they did in the file; what comes after one that doesn't isn't read.
    """

    __slots__ = ("ascending", "offsets", "timestamps")

    def __init__(self, path: Path, *, load: bool, owner: Holder | None = None) -> None:
        super().__init__(path, owner)
        self.timestamps, self.offsets = array("q"), array("i")
        self.ascending = True
        for timestamp, offset in _TIME_ENTRY.iter_unpack(self.read(_TIME_ENTRY.size) if load else b""):
            # Kafka preallocates zeros.
            if (self.timestamps and timestamp <= self.timestamps[-1]) or (not timestamp and not offset):
                self.ascending = not timestamp and not offset
                break
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def __len__(self) -> int:
        return len(self.timestamps)

    def append(self, timestamp: int, offset: int) -> None:
        """Adds that no record up to `offset` is later than `timestamp`, unless the last entry says so."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            write_at(self.open(), _TIME_ENTRY.pack(timestamp, offset), len(self.timestamps) * _TIME_ENTRY.size)
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def extend(self, entries: Sequence[tuple[int, int]]) -> None:
        """Adds entries, whose timestamps ascend, with one write."""
        packed = b"".join([_TIME_ENTRY.pack(*entry) for entry in entries])
        write_at(self.open(), packed, len(self.timestamps) * _TIME_ENTRY.size)
        for timestamp, offset in entries:
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    @property
    def last(self) -> tuple[int, int]:
        """The largest timestamp with its offset; (-1, 0) in an empty index."""
        return (self.timestamps[-1], self.offsets[-1]) if self.timestamps else (NO_TIMESTAMP, 0)

    def offset_before(self, timestamp: int) -> int:
        """Returns an offset before which no record is as late as `timestamp`."""
        entry = bisect_left(self.timestamps, timestamp)
        return self.offsets[entry - 1] if entry else 0

    def clear(self) -> None:
        """Removes all entries."""
        del self.offsets[:], self.timestamps[:]
        self.resize(0)
