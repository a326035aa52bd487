"""What a share group is given of a log: batches as they are, and which of them it mustn't see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kohort.log.log import Log
from kohort.log.types import Aborted
from kohort.protocol.records.batch import BatchHeader, scan_batches

PIECE_BYTES: Final = 1 << 18
"""Of a log that are read at once: a few hundred records are often less than the bytes that a client takes."""


@dataclass(frozen=True, slots=True)
class FetchedBatches:
    """Complete batches of a log.

    Attributes:
        data: the batches, as they are in the log.
        headers: of each batch.
        aborted: first and last offset of each batch of an aborted transaction, if the group reads committed records.
    """

    data: bytes
    headers: Sequence[BatchHeader]
    aborted: Sequence[tuple[int, int]] = ()

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First and last offset of each batch."""
        return [(header.base_offset, header.last_offset) for header in self.headers]

    def between(self, first: int, last: int) -> memoryview:
        """The batches from the one with offset `first` to the one with offset `last`, without copying them."""
        start, end = 0, 0
        for header in self.headers:
            if header.base_offset <= first:
                start = header.position
            if header.base_offset > last:
                break
            end = header.end
        return memoryview(self.data)[start:end]


def end_offset(log: Log, *, committed: bool) -> int:
    """Where reading ends, by the isolation level."""
    return log.last_stable_offset if committed else log.high_watermark


def read_batches(
    log: Log, offset: int, max_bytes: int, *, committed: bool, min_one: bool, max_records: int
) -> FetchedBatches:
    """Reads the complete batches from the one with `offset` on, in pieces until there is enough.

    Args:
        max_bytes: no more than this, but for the first batch with `min_one`.
        committed: whether the group reads committed records only.
        max_records: it stops after the batch that has this many offsets after `offset`.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE or KAFKA_STORAGE_ERROR.
        CorruptRecordError: the log's file is damaged there.
    """
    up_to = end_offset(log, committed=committed)
    pieces, headers = list[bytes](), list[BatchHeader]()
    at, last = offset, offset + max_records - 1
    while at <= last and at < up_to:
        size = headers[-1].end if headers else 0
        room = max_bytes - size
        if room <= 0 and headers:
            break
        piece = log.read(at, min(max(room, 0), PIECE_BYTES), up_to=up_to, min_one=True)
        if len(piece) > room and (headers or not min_one):
            break
        found = list(scan_batches(piece))
        if not found:
            break
        pieces.append(piece if len(piece) == found[-1].end else piece[: found[-1].end])
        headers += [header._replace(position=header.position + size) for header in found] if size else found
        at = headers[-1].next_offset
    aborted: list[tuple[int, int]] = []
    if committed and headers:
        transactions = log.aborted_transactions(headers[0].base_offset, headers[-1].next_offset)
        aborted = aborted_batches(headers, transactions)
    return FetchedBatches(pieces[0] if len(pieces) == 1 else b"".join(pieces), headers, aborted)


def aborted_batches(headers: Sequence[BatchHeader], transactions: Sequence[Aborted]) -> list[tuple[int, int]]:
    """First and last offset of each batch of aborted transactions, from the log's index of these.

    A transaction's producer is in one from the first offset to the next control batch, which is its abort marker.
    """
    ordered = sorted(transactions, key=lambda transaction: transaction.first_offset)
    producers: set[int] = set()
    found = []
    begun = 0
    for header in headers:
        while begun < len(ordered) and ordered[begun].first_offset <= header.last_offset:
            producers.add(ordered[begun].producer_id)
            begun += 1
        if header.control:
            producers.discard(header.producer_id)
        elif header.transactional and header.producer_id in producers:
            found.append((header.base_offset, header.last_offset))
    return found
