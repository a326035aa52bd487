"""What a share group is given of a log: batches as they are, and which of them it mustn't see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohort.log.log import Log
from kohort.log.types import Aborted
from kohort.protocol.records.batch import BatchHeader, scan_batches


@dataclass(frozen=True, slots=True)
class FetchedBatches:
    """Complete batches of a log.

    Attributes:
        data: the batches, as they are in the log; it may end with an incomplete one, which doesn't count.
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


def read_batches(log: Log, offset: int, max_bytes: int, *, committed: bool, min_one: bool) -> FetchedBatches:
    """Reads the complete batches from the one with `offset` on.

    Args:
        max_bytes: no more than this, but for the first batch with `min_one`.
        committed: whether the group reads committed records only.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE or KAFKA_STORAGE_ERROR.
        CorruptRecordError: the log's file is damaged there.
    """
    up_to = end_offset(log, committed=committed)
    data = log.read(offset, max_bytes, up_to=up_to, min_one=min_one)
    headers = list(scan_batches(data))
    size = headers[-1].end if headers else 0
    aborted: list[tuple[int, int]] = []
    if committed and headers:
        aborted = aborted_batches(headers, log.aborted_transactions(headers[0].base_offset, up_to, size=size))
    return FetchedBatches(data, headers, aborted)


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
