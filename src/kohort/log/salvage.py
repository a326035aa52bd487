"""Finds the whole batches in a damaged segment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.log.damage import Range
from kohort.log.files import read_exactly
from kohort.log.scan import NO_LIMIT, ScannedBatch, scan
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, MAGIC_AT, check_batch, read_header

_CHUNK: Final = 1 << 20

_PATIENCE: Final = 4 << 30
"""Bytes of what looked like batches, and isn't, until large ones aren't looked at any more. A record can hold very many
headers, each of which claims all that follows: the server would read it for hours."""

_SMALL: Final = 16 << 10
"""Bytes of a batch that is looked at all the same."""

_MAX_RELATIVE: Final = 2**31 - 1
_OFFSET_TOP: Final = 4


class Gap(NamedTuple):
    """Bytes of a segment that aren't whole batches.

    Attributes:
        position, end: in bytes.
        least: the offset after the batches before it.
        following: the base offset of the batch after it; None at the segment's end.
        reason: what is wrong at the position.
    """

    position: int
    end: int
    least: int
    following: int | None
    reason: str


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


def batches_and_gaps(
    fd: int, start: int, end: int, *, base_offset: int, least: int, limit: int = NO_LIMIT
) -> Iterator[ScannedBatch | Gap]:
    """Yields the valid batches between two positions of a segment's log, where anything may be, and what is between.

    Args:
        base_offset: of the segment.
        least: the least offset that may come.
        limit: all offsets are below it: where the next segment begins.

    Raises:
        OSError: the file can't be read.
    """
    position = start
    limit = min(limit, base_offset + _MAX_RELATIVE + 1)
    while position < end:
        try:
            for batch in scan(fd, position, end, check=True, base_offset=least, limit=limit):
                least, position = batch.header.next_offset, batch.file_position + batch.header.size
                yield batch
            return
        except CorruptRecordError as error:
            reason = error.reason
        following = _next_batch(fd, position, end, base_offset, least, limit)
        if following is None:
            yield Gap(position, end, least, None, reason)
            return
        next_offset = read_header(read_exactly(fd, HEADER_SIZE, following)).base_offset
        yield Gap(position, following, least, next_offset, reason)
        position = following


def stretches(
    fd: int, start: int, end: int, *, base_offset: int, least: int, limit: int = NO_LIMIT
) -> Iterator[Stretch]:
    """Yields the stretches of valid batches; as `batches_and_gaps`."""
    found: Stretch | None = None
    for item in batches_and_gaps(fd, start, end, base_offset=base_offset, least=least, limit=limit):
        if isinstance(item, Gap):
            if found is not None:
                yield found
            found = None
        else:
            header = item.header
            if found is None:
                found = Stretch(item.file_position, 0, Range(header.base_offset, header.base_offset), 0)
            offsets = Range(found.offsets.first, header.next_offset)
            found = Stretch(found.position, found.size + header.size, offsets, found.batches + 1)
    if found is not None:
        yield found


def _next_batch(fd: int, damaged: int, end: int, base_offset: int, least: int, limit: int) -> int | None:
    """Finds the next whole batch after the damaged one at a position."""
    # Where its length says, first: a record of the damaged batch may hold what looks like a batch.
    if end - damaged >= HEADER_SIZE:
        header = read_header(read_exactly(fd, HEADER_SIZE, damaged))
        following = damaged + header.size
        if header.batch_length > 0 and _is_whole(fd, following, _claimed_size(fd, following, end, least, limit)):
            return following
    tops = {(base_offset >> 32).to_bytes(4, "big"), (base_offset + _MAX_RELATIVE >> 32).to_bytes(4, "big")}
    # The magic byte comes first, as the search for a literal is the quickest; what is before it is looked at then.
    header_like = re.compile(
        rb"(?s)\x02(?<=(?:%s).{%d}[\x00-\x7f].{7}\x02)" % (b"|".join(map(re.escape, sorted(tops))), _OFFSET_TOP)
    )
    position = damaged + 1
    patience = _PATIENCE
    while end - position >= HEADER_SIZE:
        chunk = read_exactly(fd, min(_CHUNK, end - position), position)
        for found in header_like.finditer(chunk):
            start = position + found.start() - MAGIC_AT
            size = _claimed_size(fd, start, end, least, limit)
            if size > _SMALL and patience <= 0:
                continue
            if _is_whole(fd, start, size):
                return start
            patience -= size
        position += len(chunk) - MAGIC_AT
    return None


def _claimed_size(fd: int, position: int, end: int, least: int, limit: int) -> int:
    """The size of the batch at a position by its header; 0 if there can be none."""
    if end - position < HEADER_SIZE:
        return 0
    header = read_header(read_exactly(fd, HEADER_SIZE, position))
    if not HEADER_SIZE <= header.size <= end - position or header.base_offset < least or header.next_offset > limit:
        return 0
    return header.size


def _is_whole(fd: int, position: int, size: int) -> bool:
    if not size:
        return False
    try:
        check_batch(read_exactly(fd, size, position))
    except CorruptRecordError:
        return False
    return True
