"""Which records to read: of which partitions, from where, to where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kohort.cli.client.failures import no_such
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer
    from kohort.client.types import PartitionInfo

__all__ = ["Selection"]

_NEW_SECONDS: Final = 2.0
"""Seconds after which a topic has been heard of everywhere, if it isn't a slip of the pen."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What somebody wants to read.

    Attributes:
        topics, pattern: topics by name, or all whose name the regular expression matches as a whole.
        partitions: their numbers; None for all.
        start: an offset; a negative number of records before the end; or one of the ends of the log.
        start_time: ms; from the first record that isn't older, instead of `start`.
        end_time: ms; up to the first record that isn't older.
        bounded: whether to stop at the end that the log has now.
        most: how many records to read, in all.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[int, ...] | None = None
    start: int | Literal["earliest", "latest"] = "latest"
    start_time: int | None = None
    end_time: int | None = None
    bounded: bool = False
    most: int | None = None

    async def find(self, consumer: Consumer) -> list[TopicPartition]:
        """The partitions that there are.

        Raises:
            ValueError: there is no such topic, or it hasn't all that were asked for.
            KafkaError: it may not be read.
        """
        topics = list(self.topics)
        if self.pattern is not None:
            topics = [topic for topic in sorted(await consumer.topics()) if re.fullmatch(self.pattern, topic)]
        found = []
        for topic in topics:
            there = sorted(info.partition for info in await _partitions(consumer, topic))
            if absent := sorted(set(self.partitions or ()) - set(there)):
                raise ValueError(f"topic {topic} has the partitions 0 to {len(there) - 1}, and no {absent[0]}")
            found += [TopicPartition(topic, number) for number in self.partitions or there]
        return found

    async def starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Where to begin in each partition, as far as the consumer wouldn't begin there by itself."""
        if self.start_time is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, self.start_time))
            ends = await consumer.end_offsets(*partitions)
            return {tp: at.offset if (at := found.get(tp)) is not None else ends[tp] for tp in partitions}
        if isinstance(self.start, str):
            return {}
        if self.start >= 0:
            return dict.fromkeys(partitions, self.start)
        ends = await consumer.end_offsets(*partitions)
        begins = await consumer.beginning_offsets(*partitions)
        return {tp: max(begins[tp], ends[tp] + self.start) for tp in partitions}

    async def ends(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Where to stop in each partition: an offset that isn't read any more."""
        ends: dict[TopicPartition, int] = dict(await consumer.end_offsets(*partitions))
        if self.end_time is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, self.end_time))
            ends |= {tp: min(at.offset, ends[tp]) for tp, at in found.items() if at is not None}
        return ends


async def _partitions(consumer: Consumer, topic: str) -> list[PartitionInfo]:
    """A topic's partitions; that there is none is known before the consumer's patience is over."""
    try:
        async with time_limit(_NEW_SECONDS):
            return await consumer.partitions_for(topic)
    except TimeoutError:
        there = await consumer.topics()
    if topic not in there:
        raise ValueError(no_such("topic", topic, there))
    return await consumer.partitions_for(topic)
