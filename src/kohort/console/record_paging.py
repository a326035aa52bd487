"""Which of the records that were found a page shows, and where the next page goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from kohort.client.types import Record, TopicPartition
from kohort.console.record_ranges import OffsetRange, RecordChoice, Where

MOST_POSITIONS: Final = 300
"""Partitions whose positions a link to the next page has: an address can't be of any length."""


class RecordPage(NamedTuple):
    """The records of a page.

    Attributes:
        records: in the order of their times, and of their offsets within a partition.
        positions: where the next page goes on, by partition; None where there is nothing more, or it can't be said.
    """

    records: list[Record]
    positions: dict[int, int] | None


def page_of_records(
    choice: RecordChoice,
    wanted: Mapping[TopicPartition, OffsetRange],
    reached: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, Sequence[Record]],
) -> RecordPage:
    """The page of what was found.

    Of each partition those are shown that come first, or from the end last, so that the next page has exactly the rest.

    Args:
        choice: what was wanted.
        wanted: what was to be looked at.
        reached: the offset up to which each partition was looked at.
        found: the records that are wanted, of each partition in order.
    """
    backwards = choice.where is Where.END
    runs = [reversed(records) if backwards else records for records in found.values()]
    ordered = merge(*runs, key=lambda record: -record.timestamp if backwards else record.timestamp)
    shown = [*islice(ordered, choice.count)]
    taken = {(each.partition, each.offset) for each in shown}
    whole = all(reached.get(at, each.start) >= each.stop for at, each in wanted.items())
    positions = {}
    more = False
    for at, each in wanted.items():
        left = [record.offset for record in found.get(at, ()) if (at.partition, record.offset) not in taken]
        if backwards:
            positions[at.partition] = max(left) + 1 if left else each.start
            more |= positions[at.partition] > each.first
        else:
            positions[at.partition] = min(left) if left else reached.get(at, each.start)
            more |= positions[at.partition] < each.end
    for partition, position in choice.positions.items():
        positions.setdefault(partition, position)  # of one that is done
    known = more and len(positions) <= MOST_POSITIONS and (whole or not backwards)
    shown.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
    return RecordPage(shown, positions if known else None)
