"""The selection of records to read: partitions, start and end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kohort.cli.client.errors import not_found
from kohort.cli.data.last_records import last_records
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.cli.data.record_path import RecordPath
    from kohort.client.consumer import Consumer
    from kohort.client.types import PartitionInfo

_NEW_SECONDS: Final = 2.0
"""Seconds after which a new topic is known to all brokers; one that isn't is taken for a typing error."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The records to read.

    Attributes:
        topics, pattern: topics by name, or all whose whole name the regular expression matches.
        partitions: their numbers; None for all.
        start: an offset; a negative number of records before the end; or one of the ends of the log.
        start_time: ms; from the first record that isn't older, instead of `start`.
        end_time: ms; up to the first record that isn't older.
        bounded: whether to stop at the end that the log has now.
        most: number of records to read in all.
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
        """The selected partitions.

        Raises:
            ValueError: there is no such topic or partition.
            KafkaError: it may not be read.
        """
        topics = list(self.topics)
        if self.pattern is not None:
            topics = [topic for topic in sorted(await consumer.topics()) if re.fullmatch(self.pattern, topic)]
        found = []
        for topic in topics:
            existing = sorted(info.partition for info in await _partitions(consumer, topic))
            if missing := sorted(set(self.partitions or ()) - set(existing)):
                raise ValueError(f"topic {topic} has the partitions 0 to {len(existing) - 1}, and no {missing[0]}")
            found += [TopicPartition(topic, number) for number in self.partitions or existing]
        return found

    async def starts(
        self, consumer: Consumer, path: RecordPath, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The start of each partition, if it isn't where the consumer begins by itself."""
        if self.start_time is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, self.start_time))
            ends = await consumer.end_offsets(*partitions)
            return {tp: at.offset if (at := found.get(tp)) is not None else ends[tp] for tp in partitions}
        if isinstance(self.start, str):
            return {}
        if self.start >= 0:
            return dict.fromkeys(partitions, self.start)
        return await last_records(consumer, path, partitions, -self.start)

    async def ends(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition: the first offset that isn't read."""
        ends: dict[TopicPartition, int] = dict(await consumer.end_offsets(*partitions))
        if self.end_time is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, self.end_time))
            ends |= {tp: min(at.offset, ends[tp]) for tp, at in found.items() if at is not None}
        return ends


async def _partitions(consumer: Consumer, topic: str) -> list[PartitionInfo]:
    """A topic's partitions; an unknown topic is reported before the consumer's timeout."""
    try:
        async with time_limit(_NEW_SECONDS):
            return await consumer.partitions_for(topic)
    except TimeoutError:
        topics = await consumer.topics()
    if topic not in topics:
        raise ValueError(not_found("topic", topic, topics))
    return await consumer.partitions_for(topic)
