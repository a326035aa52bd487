"""Scans the batches of a segment file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.log.files import read_exactly
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MAX_OFFSET,
    BatchHeader,
    check_batch,
    read_header,
)  # fmt: skip

_CHUNK: Final = 1 << 20

NO_LIMIT: Final = MAX_OFFSET + 1


class ScannedBatch(NamedTuple):
    """A batch in a file: its header, a buffer that has it at `header.position`, and its position in the file."""

    header: BatchHeader
    data: bytes
    file_position: int


def scan(
    fd: int, start: int, end: int, *, check: bool, base_offset: int = 0, limit: int = NO_LIMIT
) -> Iterator[ScannedBatch]:
    """Yields the batches between two positions of a file; a batch starts at `start`.

    With `check`, batches are fully validated with their checksums, and their offsets must ascend from `base_offset`
    and be below `limit`; otherwise only what is needed to find the next one is.

    Raises:
        CorruptRecordError: at the first incomplete or invalid batch, with its position in the file.
        OSError: the file can't be read.
    """
    position = start
    data, at = b"", 0
    expected = base_offset
    while position < end:
        if len(data) - at < HEADER_SIZE:
            data, at = os.pread(fd, min(_CHUNK, end - position), position), 0
        try:
            header = read_header(data, at)
        except CorruptRecordError as error:
            raise CorruptRecordError(error.base_offset, position, error.reason) from None
        size = header.size
        if header.batch_length < HEADER_SIZE - LENGTH_END or header.magic != MAGIC or size > end - position:
            reason = (
                f"incomplete batch: length {header.batch_length}, magic {header.magic}, {end - position} bytes left"
            )
            raise CorruptRecordError(header.base_offset, position, reason)
        if len(data) - at < size:
            data, at = os.pread(fd, min(max(size, _CHUNK), end - position), position), 0
            if len(data) < size:
                raise CorruptRecordError(header.base_offset, position, f"{size} bytes, {len(data)} can be read")
            header = read_header(data, 0)
        if check:
            try:
                check_batch(data, at)
            except CorruptRecordError as error:
                raise CorruptRecordError(header.base_offset, position, error.reason) from None
            if header.base_offset < expected:
                reason = f"its base offset is {header.base_offset} where {expected} is the least"
                raise CorruptRecordError(header.base_offset, position, reason)
            if header.next_offset > limit:
                reason = f"its last offset is {header.last_offset} where {limit - 1} is the greatest"
                raise CorruptRecordError(header.base_offset, position, reason)
            # The checksum doesn't cover the base offset. If the next batch begins before this one ends, though not
            # before this one might begin, then it is this one's that is wrong.
            if header.base_offset > expected:
                following = _base_offset(fd, position + size, end)
                if following is not None and expected <= following < header.next_offset:
                    reason = f"its base offset is {header.base_offset}, but the next batch begins at {following}"
                    raise CorruptRecordError(header.base_offset, position, reason)
            expected = header.next_offset
        yield ScannedBatch(header, data, position)
        position += size
        at += size


def _base_offset(fd: int, position: int, end: int) -> int | None:
    """The base offset of the batch at a position; None where there is none."""
    if end - position < HEADER_SIZE:
        return None
    return read_header(read_exactly(fd, HEADER_SIZE, position)).base_offset


def claimed_end(fd: int, position: int, end: int, offset: int) -> int:
    """The offset after a batch that isn't whole, if its header is plausible; else `offset`, where it should begin."""
    if end - position < HEADER_SIZE:
        return offset
    header = read_header(read_exactly(fd, HEADER_SIZE, position))
    plausible = header.base_offset == offset and header.magic == MAGIC and 0 <= header.last_offset_delta < 2**24
    return header.next_offset if plausible else offset
