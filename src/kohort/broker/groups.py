"""Group coordination as the broker sees it: shards in `__consumer_offsets`, and what spans several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.broker.config.derive import group_settings
from kohort.broker.runtime import CoordinatorRuntime, ShardState
from kohort.coordinator.shard import GroupShard, value_version
from kohort.protocol.message import Data
from kohort.protocol.stored import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

__all__ = ["GroupRuntime"]


class GroupRuntime(CoordinatorRuntime[GroupShard]):
    """The shards of the group coordinator."""

    def __init__(self, broker: Broker) -> None:
        config = broker.config
        super().__init__(
            broker,
            OFFSETS_TOPIC,
            config.int("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
            },
        )
        self._settings = group_settings(config)

    def make(self, partition: int) -> GroupShard:
        """A new, empty shard."""
        return GroupShard(partition, self._settings, self.broker.wheel, self.broker.new_member_id)

    def value_version(self, value: Data) -> int:
        """The version that Kafka 4.2 writes."""
        return value_version(value)

    def replay_marker(self, shard: GroupShard, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """The offsets of a transaction count from now on, or never."""
        shard.replay_marker(producer_id, producer_epoch, commit)

    def transaction_ended(self, partition: int, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """A marker was written to a partition of the topic. (A shard that is being loaded will come to it.)"""
        if partition < len(self._entries) and self._entries[partition].state is ShardState.ACTIVE:
            self.replay_marker(self._entries[partition].shard, producer_id, producer_epoch, commit)

    def topic_deleted(self, name: str) -> None:
        """Forget the offsets that were committed for a topic."""
        self.each(lambda shard: shard.offsets.delete_topic(name))

    def expire_offsets(self) -> None:
        """Let the offsets go that nobody has needed for `offsets.retention.minutes`."""
        now = self.broker.now()
        self.each(lambda shard: shard.offsets.expire(now))
