"""Finds the whole batches in a damaged segment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.log.damage import Range
from kohort.log.files import read_exactly
from kohort.log.scan import scan
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, check_batch, read_header

_CHUNK: Final = 1 << 20
_MAX_RELATIVE: Final = 2**31 - 1
_OFFSET_TOP: Final = 4
_MAGIC_END: Final = 17


class Stretch(NamedTuple):
    """Whole batches that follow one another in a file.

    Attributes:
        position, size: in bytes.
        offsets: from the first batch's base offset on.
    """

    position: int
    size: int
    offsets: Range
    batches: int


def stretches(fd: int, start: int, end: int, *, base_offset: int, least: int) -> Iterator[Stretch]:
    """Yields the stretches of valid batches between two positions of a segment's log, where anything may be.

    Args:
        base_offset: of the segment.
        least: the least offset that may come.

    Raises:
        OSError: the file can't be read.
    """
    position: int | None = start
    while position is not None and position < end:
        stop, batches, first = position, 0, least
        damaged: int | None = None
        try:
            for header, _, at in scan(fd, position, end, check=True, base_offset=least):
                if header.last_offset - base_offset > _MAX_RELATIVE:
                    damaged = at
                    break
                first = first if batches else header.base_offset
                stop, batches, least = at + header.size, batches + 1, header.next_offset
        except CorruptRecordError as error:
            damaged = error.position
        if batches:
            yield Stretch(position, stop - position, Range(first, least), batches)
        position = None if damaged is None else _next_batch(fd, damaged, end, base_offset, least)


def _next_batch(fd: int, damaged: int, end: int, base_offset: int, least: int) -> int | None:
    """Finds the next whole batch after the damaged one at a position."""
    # Where its length says, first: a record of the damaged batch may hold what looks like a batch.
    if end - damaged >= HEADER_SIZE:
        header = read_header(read_exactly(fd, HEADER_SIZE, damaged))
        if header.batch_length > 0 and _is_batch(fd, damaged + header.size, end, base_offset, least):
            return damaged + header.size
    tops = {(base_offset >> 32).to_bytes(4, "big"), (base_offset + _MAX_RELATIVE >> 32).to_bytes(4, "big")}
    header_like = re.compile(
        rb"(?s)(?=(?:%s).{%d}[\x00-\x7f].{7}\x02)" % (b"|".join(map(re.escape, sorted(tops))), _OFFSET_TOP)
    )
    position = damaged + 1
    while end - position >= HEADER_SIZE:
        chunk = read_exactly(fd, min(_CHUNK, end - position), position)
        for found in header_like.finditer(chunk):
            if _is_batch(fd, position + found.start(), end, base_offset, least):
                return position + found.start()
        if len(chunk) == end - position:
            break
        position += len(chunk) - _MAGIC_END + 1
    return None


def _is_batch(fd: int, position: int, end: int, base_offset: int, least: int) -> bool:
    if end - position < HEADER_SIZE:
        return False
    header = read_header(read_exactly(fd, HEADER_SIZE, position))
    if not HEADER_SIZE <= header.size <= end - position or header.base_offset < least:
        return False
    try:
        check_batch(read_exactly(fd, header.size, position))
    except CorruptRecordError:
        return False
    return header.last_offset - base_offset <= _MAX_RELATIVE
