"""The share coordinator: its shards in `__share_group_state`, and the deletion of what is redundant there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from kohort.broker.config.component_settings import share_state_settings
from kohort.broker.coordinator_runtime import CoordinatorEnvironment, CoordinatorRuntime, ShardState
from kohort.broker.periodic_tasks import PeriodicTask
from kohort.broker.reply import Reply
from kohort.broker.topics import Topic
from kohort.coordinator.share_state import (
    Outcome,
    ReadOutcome,
    SharePartitionKey,
    ShareStateShard,
    StateBatch,
    Summary,
)
from kohort.coordinator.step import Step
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.stored import SHARE_STATE_TOPIC

R = TypeVar("R")

log = logging.getLogger("kohort.broker.share_coordinator")


class ShareCoordinator(CoordinatorRuntime[ShareStateShard]):
    """Keeps the delivery state of share partitions.

    Each request is for one share partition, and returns its result, or a `Reply` if it comes later: when what was
    written is safe. While the log is loaded it is COORDINATOR_LOAD_IN_PROGRESS.
    """

    def __init__(self, environment: CoordinatorEnvironment) -> None:
        config = environment.config.current
        super().__init__(
            environment,
            SHARE_STATE_TOPIC,
            config.int("share.coordinator.state.topic.num.partitions"),
            {
                # Updates build on each other, so compaction would lose some; `prune` deletes what is redundant.
                "cleanup.policy": "delete",
                "compression.type": "uncompressed",
                "retention.ms": "-1",
                "segment.bytes": str(config.int("share.coordinator.state.topic.segment.bytes")),
            },
        )
        self._settings = share_state_settings(config)

    def make(self, partition: int) -> ShareStateShard:
        return ShareStateShard(partition, self._settings, self._partitions_of)

    def replay(
        self, shard: ShareStateShard, offset: int, key: Data, value: Data | None, producer: tuple[int, int] | None
    ) -> None:
        """Applies a record; the shard notes where snapshots are."""
        shard.replay_at(offset, key, value)

    # Requests

    def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> Outcome | Reply[Outcome]:
        """Begins a share partition's state anew; a start offset of -1 leaves it to the group's reset policy.

        INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._submit(
            key,
            lambda shard, now, reply: shard.initialize(key, state_epoch, start_offset, now, reply),
            Outcome,
        )

    def read(
        self, group_id: str, topic_id: UUID, partition: int, leader_epoch: int
    ) -> ReadOutcome | Reply[ReadOutcome]:
        """Reads a state for the partition's leader, and fences leaders with a lower epoch from now on.

        INVALID_REQUEST if it wasn't initialized, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._submit(key, lambda shard, now, reply: shard.read(key, leader_epoch, now, reply), ReadOutcome)

    def write(
        self,
        group_id: str,
        topic_id: UUID,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Outcome | Reply[Outcome]:
        """Writes what has changed in a state; a start offset of -1 leaves it as it is.

        INVALID_REQUEST if it wasn't initialized, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._submit(
            key,
            lambda shard, now, reply: shard.write(
                key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches, now, reply
            ),
            Outcome,
        )

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> Outcome | Reply[Outcome]:
        """Deletes a state; one that isn't there counts as deleted. INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._submit(key, lambda shard, now, reply: shard.delete(key, reply), Outcome)

    def read_summary(self, group_id: str, topic_id: UUID, partition: int) -> Summary | Reply[Summary]:
        """Reads a state without its batches; the start offset is -1 if it wasn't initialized.

        INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._submit(key, lambda shard, now, reply: shard.summary(key, reply), Summary)

    def _submit(
        self,
        key: SharePartitionKey,
        operation: Callable[[ShareStateShard, int, Callable[[R], None]], Step],
        kind: Callable[[ErrorCode, str], R],
    ) -> R | Reply[R]:
        return self.submit(str(key), operation, lambda code: kind(code, code.name))

    # Topics, and what is redundant

    def topic_deleted(self, topic: Topic) -> None:
        """Deletes the states of the topic's share partitions; `delete_orphans` does it if this comes to nothing."""
        self.each(ShareStateShard.delete_orphans)

    def periodic_tasks(self) -> Sequence[PeriodicTask]:
        return (
            PeriodicTask(self.prune, "share.coordinator.state.topic.prune.interval.ms"),
            PeriodicTask(self.snapshot_cold, "share.coordinator.cold.partition.snapshot.interval.ms"),
            PeriodicTask(self.delete_orphans, "share.coordinator.state.topic.prune.interval.ms"),
        )

    async def prune(self) -> None:
        """Deletes records before the oldest of the last snapshots."""
        for entry in self._entries:
            logged = entry.partition.log
            before = min(entry.shard.redundant_before(), logged.high_watermark)
            if entry.state is ShardState.ACTIVE and before > logged.log_start_offset:
                try:
                    logged.delete_records(before)
                except KafkaError as error:
                    log.error("what is redundant in %s can't be deleted: %s", entry.partition, error)

    async def snapshot_cold(self) -> None:
        """Writes the snapshots of partitions again that weren't written to for long."""
        now = self._clock()
        self.each(lambda shard: shard.snapshot_cold(now))

    async def delete_orphans(self) -> None:
        """Deletes states of deleted topics, many at a time."""
        self.each(ShareStateShard.delete_orphans)

    def _partitions_of(self, topic_id: UUID) -> int:
        topic = self.environment.topics.by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)
