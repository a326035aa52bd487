"""Where the last records of partitions begin, which isn't their number before the end.

The last offsets of a log may be those of markers, which end transactions, of records that were aborted, or of none,
after compaction. So records are counted, backwards from the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.cli.data.record_path import RecordPath
    from kohort.client.consumer import Consumer

MOST_COUNTED: Final = 10_000
"""Of more records offsets are counted instead: a few too few are no harm there, and reading all twice takes long."""

_MOST_BACK: Final = 100_000
"""Offsets without a record that are gone back over, in a partition."""

_STEP: Final = 16
_POLL_MS: Final = 20

_PATIENCE_S: Final = 30.0
"""Without a step ahead: a log that was cut after its end was asked for, as by a leader that lacks records, has none."""


@dataclass(slots=True)
class _Search:
    """Of one partition.

    Attributes:
        begin, end: of its log.
        first: the first offset that has been looked at, or is now.
        limit: where that look ends.
        found: the offsets of the records from `limit` on, in order.
        looked: those that the look has found.
    """

    begin: int
    end: int
    first: int
    limit: int
    found: list[int] = field(default_factory=list)
    looked: list[int] = field(default_factory=list)

    def goes_back(self, count: int) -> bool:
        """Takes in what the last look has found; whether another one, further back, is wanted."""
        self.found = self.looked + self.found
        self.looked = []
        least = max(self.begin, self.end - count - _MOST_BACK)
        if len(self.found) >= count or self.first <= least:
            return False
        self.limit = self.first
        self.first = max(least, self.first - max(_STEP, 2 * (self.end - self.first)))
        return True


async def last_records(
    consumer: Consumer, path: RecordPath, partitions: list[TopicPartition], count: int
) -> dict[TopicPartition, int]:
    """Where in each partition so many records are left, or all that it has; its end, if it has none.

    Offsets are counted instead if there are more than `MOST_COUNTED`, or if the records don't come.

    Which records count is up to the consumer's isolation level. What it is assigned afterwards doesn't matter.

    Raises:
        KafkaError, ClientError: they can't be read.
    """
    ends = await consumer.end_offsets(*partitions)
    begins = await consumer.beginning_offsets(*partitions)
    starts = {tp: max(begins[tp], ends[tp] - count) for tp in partitions}
    if count > MOST_COUNTED:
        return starts
    searches = {tp: _Search(begins[tp], ends[tp], starts[tp], ends[tp]) for tp in partitions if begins[tp] < ends[tp]}
    looking = searches
    while looking:
        if not await _look(consumer, path, looking):
            return starts
        looking = {tp: search for tp, search in looking.items() if search.goes_back(count)}
    for tp, search in searches.items():
        starts[tp] = search.found[-count:][0] if search.found else search.end
    return starts


async def _look(consumer: Consumer, path: RecordPath, searches: dict[TopicPartition, _Search]) -> bool:
    """Reads each partition from where its search begins up to its limit; whether all could be reached."""
    consumer.assign(searches)
    for tp, search in searches.items():
        consumer.seek(tp, search.first)
    left, before, deadline = set(searches), dict[TopicPartition, int](), time.monotonic() + _PATIENCE_S
    while left:
        polled = await path.poll(consumer, _POLL_MS)
        if polled is not None:
            search = searches[polled.partition]
            search.looked += [int(offset) for offset in polled.offsets if offset < search.limit]
        at = {tp: consumer.position(tp) or 0 for tp in left}
        if polled is not None or at != before:
            before, deadline = at, time.monotonic() + _PATIENCE_S
        elif time.monotonic() > deadline:
            break
        done = {tp for tp in left if at[tp] >= searches[tp].limit}
        consumer.pause(*done)
        left -= done
    consumer.resume(*searches)
    return not left
