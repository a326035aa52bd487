"""Commits epochs to topics in memory, all or nothing, as a transaction does."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ProgramError
from kohort.spark.program.settings import check_name
from kohort.spark.runtime.epoch_writes import EpochWrites
from kohort.spark.testing.topics import MemoryTopics


class MemoryCommitter:
    """What `EpochCommitter` does with a producer and a group, with topics of a test."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics
        self._writes = EpochWrites()

    async def open(self) -> None:
        """Nothing has to be opened."""

    async def begin_batches(self, begun: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Nothing: a test's application doesn't crash between a batch and its commit."""

    async def send(self, writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Keep what is to be committed."""
        self._writes = writes

    async def missing(self, topics: Collection[str]) -> frozenset[str]:
        """Creates those that rows name and that aren't there, but for what can't be a topic's name."""
        missing = set()
        for topic in topics:
            try:
                self._topics.create(check_name("topic", topic), 1)
            except ProgramError:
                missing.add(topic)
        return frozenset(missing)

    async def commit(self) -> dict[tuple[str, int], int]:
        """Write it to the topics; the changelogs' offsets after that, by (store, partition)."""
        writes, self._writes = self._writes, EpochWrites()
        for topic, table in writes.routed:
            self._topics.append(topic, self._routed(topic, table))
        for topic, table in writes.sent:
            self._topics.append(topic, table)
        positions = {}
        for (store, topic, partition), table in writes.changelogs.items():
            self._topics.append(topic, table, partition)
            positions[store, partition] = self._topics.end(TopicPartition(topic, partition))
        return positions

    async def abort(self) -> None:
        """Forget it."""
        self._writes = EpochWrites()

    async def close(self, *, timeout_ms: float = 5_000) -> None:
        """Forget what isn't committed."""
        await self.abort()

    def _routed(self, topic: str, table: pa.Table) -> pa.Table:
        """With the partitions that the routes lead to, instead of the routes."""
        partitions = self._topics.partitions(topic)
        if partitions > 1:
            from kohort.protocol.records.partitioner import partitions_of

            placed = pa.array(partitions_of(table["route"], partitions), pa.int32())
            table = table.append_column("partition", placed)
        return table.drop_columns(["route"])
