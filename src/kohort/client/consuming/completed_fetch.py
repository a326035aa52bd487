"""A partition's fetched batches, checked and filtered, in pieces to decode later.

Control batches, batches of aborted transactions, and batches below the fetch offset are left out (a broker returns
whole batches, so the first may begin earlier).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from kohort.client.errors import RecordError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.records.batch import BatchHeader, Compression, check_batch, scan_batches
from kohort.protocol.records.rows import read_records

PIECE_BYTES: Final = 1024 * 1024
"""Bytes of batches that are decoded at once: they block the event loop so long, and stay in memory decoded."""

SMALL_PIECE_BYTES: Final = 64 * 1024
"""The same while records are decoded one after another, and the user waits for the first."""

Aborted = FetchResponse.TopicResponse.Partition.AbortedTransaction

_ABORT: Final = b"\0\0"
_BY_FIRST_OFFSET: Final = attrgetter("first_offset")


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive batches of one leader epoch.

    Attributes:
        data: the response's bytes.
        headers: the batches to decode; none if all were left out.
        offset: records before it aren't wanted.
        next_offset: the offset after the piece.
        leader_epoch: of the batches.
        size: bytes that it takes of `queued_max_bytes`.
    """

    data: bytes
    headers: Sequence[BatchHeader]
    offset: int
    next_offset: int
    leader_epoch: int
    size: int

    def part(self, first: int) -> Piece:
        """Returns the piece from its batch `first` on."""
        headers = self.headers[first:]
        size = sum(header.size for header in headers)
        return Piece(self.data, headers, headers[0].base_offset, self.next_offset, self.leader_epoch, size)


@dataclass(frozen=True, slots=True)
class CompletedFetch:
    """A partition's part of a fetch response.

    Attributes:
        pieces: in order, one ending where the next begins.
        next_offset: where to fetch next.
        error: the batch there is corrupt, so that nothing after it can be given.
        cut_off: whether there is only the beginning of a batch: the fetch size must grow.
    """

    pieces: Sequence[Piece]
    next_offset: int
    error: RecordError | None
    cut_off: bool


def read_fetch(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Sequence[Aborted] | None,
    *,
    check: bool = True,
    piece_bytes: int = PIECE_BYTES,
) -> CompletedFetch:
    """Returns the pieces of fetched batches.

    Args:
        data: record batches, the last perhaps cut off.
        offset: the fetch offset.
        aborted: the aborted transactions among them, with `read_committed`.
        check: whether to compare checksums.
        piece_bytes: where to end a piece; a batch isn't divided.
    """
    pending_aborts = sorted(aborted or (), key=_BY_FIRST_OFFSET, reverse=True)
    aborting: set[int] = set()
    pieces: list[Piece] = []
    headers: list[BatchHeader] = []
    begin, end, size, epoch = offset, offset, 0, -1
    corruption: RecordError | None = None

    def finish() -> None:
        nonlocal begin, headers, size
        if end > begin:
            pieces.append(Piece(data, headers, begin, end, epoch, size))
            begin, headers, size = end, [], 0

    try:
        for header in scan_batches(data):
            if check:
                check_batch(data, header.position)
            elif header.compression > Compression.ZSTD:
                reason = f"unknown compression {header.compression}"
                raise CorruptRecordError(header.base_offset, header.position, reason)
            if header.next_offset <= end:
                continue
            if size and (size + header.size > piece_bytes or header.partition_leader_epoch != epoch):
                finish()
            while pending_aborts and pending_aborts[-1].first_offset <= header.last_offset:
                aborting.add(pending_aborts.pop().producer_id)
            if header.control:
                if aborting and _is_abort(data, header):
                    aborting.discard(header.producer_id)
            elif header.record_count and not (header.transactional and header.producer_id in aborting):
                headers.append(header)
            size += header.size
            end = header.next_offset
            epoch = header.partition_leader_epoch
    except CorruptRecordError as error:
        corruption = corrupt_batch(partition, error, end, data)
    finish()
    return CompletedFetch(pieces, end, corruption, cut_off=bool(data) and not pieces and corruption is None)


def corrupt_batch(partition: TopicPartition, error: CorruptRecordError, offset: int, data: bytes) -> RecordError:
    """Returns the error for a corrupt batch at `offset`.

    The next offset to read is the one after the batch, if its header is plausible so far, else `offset` + 1.
    """
    following = offset + 1
    try:
        header = next(iter(scan_batches(memoryview(data)[error.position :])))
    except (CorruptRecordError, StopIteration):
        pass
    else:
        if 0 <= header.last_offset_delta < 2**31 - 1 and header.base_offset <= offset < header.next_offset:
            following = header.next_offset
    return RecordError(partition, offset, following, f"corrupt data: {error}")


def _is_abort(data: bytes, header: BatchHeader) -> bool:
    """Whether a control batch aborts a transaction: its record's key is a version and then the type 0."""
    return any(record.key is not None and record.key[2:4] == _ABORT for record in read_records(data, header))
