"""What a fetch brought of a partition, checked and freed from what isn't for the user, in pieces to decode later.

Left out are control batches, batches of aborted transactions, and batches below the offset that was asked for (a
broker gives whole batches, so the first may begin earlier).
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
from kohort.protocol.records.plain import read_records

__all__ = ["PIECE_BYTES", "SMALL_PIECE_BYTES", "Answer", "Piece", "read_answer"]

PIECE_BYTES: Final = 1024 * 1024
"""Bytes of batches that are decoded at once: what a loop may be held up for, and what stays in memory decoded."""

SMALL_PIECE_BYTES: Final = 64 * 1024
"""The same while records are decoded one after another, and the user waits for the first of them."""

Aborted = FetchResponse.TopicResponse.Partition.AbortedTransaction

_ABORT: Final = b"\0\0"
_BY_FIRST_OFFSET: Final = attrgetter("first_offset")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some batches of one leader epoch, in a row.

    Attributes:
        data: the answer's bytes.
        headers: the batches to decode; none if there is nothing for the user.
        offset: records before it aren't wanted.
        next_offset: the offset after the piece.
        leader_epoch: of the batches.
        size: bytes that it takes from the consumer's allowance.
    """

    data: bytes
    headers: Sequence[BatchHeader]
    offset: int
    next_offset: int
    leader_epoch: int
    size: int

    def part(self, first: int) -> Piece:
        """The piece from its batch `first` on."""
        headers = self.headers[first:]
        size = sum(header.size for header in headers)
        return Piece(self.data, headers, headers[0].base_offset, self.next_offset, self.leader_epoch, size)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a fetch brought of a partition.

    Attributes:
        pieces: in order, one ending where the next begins.
        next_offset: where to fetch next.
        fault: what is wrong with the batch there, so that nothing after it can be given.
        cut_off: whether there is only the beginning of a batch: more must be asked for.
    """

    pieces: Sequence[Piece]
    next_offset: int
    fault: RecordError | None
    cut_off: bool


def read_answer(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Sequence[Aborted] | None,
    *,
    check: bool = True,
    piece_bytes: int = PIECE_BYTES,
) -> Answer:
    """Take apart what came.

    Args:
        partition: for the words of a fault.
        data: record batches, the last perhaps cut off.
        offset: what was asked for.
        aborted: the aborted transactions among them, if only committed records are wanted.
        check: whether to compare checksums.
        piece_bytes: where to end a piece; a batch isn't divided.
    """
    waiting = sorted(aborted or (), key=_BY_FIRST_OFFSET, reverse=True)
    aborting: set[int] = set()
    pieces: list[Piece] = []
    kept: list[BatchHeader] = []
    begin, end, size, epoch = offset, offset, 0, -1
    fault: RecordError | None = None

    def finish() -> None:
        nonlocal begin, kept, size
        if end > begin:
            pieces.append(Piece(data, kept, begin, end, epoch, size))
            begin, kept, size = end, [], 0

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
            while waiting and waiting[-1].first_offset <= header.last_offset:
                aborting.add(waiting.pop().producer_id)
            if header.control:
                if aborting and _is_abort(data, header):
                    aborting.discard(header.producer_id)
            elif header.record_count and not (header.transactional and header.producer_id in aborting):
                kept.append(header)
            size += header.size
            end = header.next_offset
            epoch = header.partition_leader_epoch
    except CorruptRecordError as error:
        fault = corrupt(partition, error, end, data)
    finish()
    return Answer(pieces, end, fault, cut_off=bool(data) and not pieces and fault is None)


def corrupt(partition: TopicPartition, error: CorruptRecordError, offset: int, data: bytes) -> RecordError:
    """What to tell the user of a batch that doesn't add up, where `offset` is where it, or the place to read, begins.

    The offset to go on from is the one after the batch, if its header can be believed so far, else the next one.
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
    """Whether a control batch ends a transaction for nothing: its record's key is a version and then the type 0."""
    return any(record.key is not None and record.key[2:4] == _ABORT for record in read_records(data, header))
