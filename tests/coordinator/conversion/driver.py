"""Drives a shard with classic groups that become consumer groups, and the other way round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from kohort.client.membership.consumer_protocol import decode_assignment, encode_assignment, encode_subscription
from kohort.client.types import TopicPartition
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.shard import GroupShard
from kohort.coordinator.step import Client, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.classic.driver import Call
from tests.coordinator.classic.driver import Driver as ClassicDriver
from tests.coordinator.conversion.cluster import TOPIC_IDS, Topics

GROUP = "group"
NAMES = {topic_id: name for name, topic_id in TOPIC_IDS.items()}
Partitions = frozenset[TopicPartition]


def parts(topic: str, *partitions: int) -> Partitions:
    return frozenset(TopicPartition(topic, partition) for partition in partitions)


def subscribes(*topics: str, owned: Partitions = frozenset(), rack: str | None = None) -> bytes:
    return encode_subscription(topics, None, owned, 0, rack)


class Driver(ClassicDriver):
    """A shard with topics `a` (6 partitions) and `b` (2); classic members subscribe to `a` and know `range`."""

    def __init__(
        self, policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL, cluster: Cluster | None = None, **settings: Any
    ) -> None:
        self.cluster = cluster or Topics()
        self.consumer_settings = ConsumerSettings(assignment_interval_ms=0)
        self.records: list[str] = []
        super().__init__(group_consumer_migration_policy=policy.value, **settings)

    def new_shard(self) -> GroupShard:
        environment = ConsumerEnvironment(lambda group_id: self.consumer_settings, self.cluster)
        return GroupShard(0, self.settings, self.wheel, self.new_id, consumer=environment)

    def perform(self, step: Step) -> None:
        if step.records and self.append_error is None:
            self.records = [f"{key.__message__.key}{'' if value is not None else '-'}" for key, value in step.records]
        super().perform(step)

    # Members ----------------------------------------------------------------------------------------------------

    def beat(
        self,
        member_id: str,
        epoch: int = 0,
        *,
        owned: Partitions | None = None,
        topics: tuple[str, ...] | None = None,
        instance: str | None = None,
        group: str = GROUP,
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat of the consumer protocol; with epoch 0 it joins and subscribes to `a`."""
        joins = epoch == 0
        by_topic: dict[UUID, list[int]] = {}
        for topic, partition in owned or ():
            by_topic.setdefault(TOPIC_IDS[topic], []).append(partition)
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=30_000 if joins else -1,
            subscribed_topic_names=topics or (("a",) if joins else None),
            topic_partitions=None
            if owned is None and not joins
            else [
                ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=topic_id, partitions=tuple(numbers))
                for topic_id, numbers in by_topic.items()
            ],
        )
        call = Call()
        self.perform(self.shard.consumer.heartbeat(request, Client("client", "10.0.0.1", 1), self.now, call))
        response: ConsumerGroupHeartbeatResponse = call.response
        return response

    def rejoin(
        self,
        member_id: str,
        *topics: str,
        owned: Partitions = frozenset(),
        instance: str | None = None,
        **options: Any,
    ) -> Call:
        """A JoinGroup of a classic member."""
        protocols = [("range", subscribes(*(topics or ("a",)), owned=owned))]
        return self.join(member_id, protocols=protocols, instance=instance, **options)

    def assigned(self, member_id: str, generation: int, instance: str | None = None) -> Partitions:
        """What a SyncGroup of a classic member gives it."""
        call = self.sync(member_id, generation, instance=instance)
        assert call.error is ErrorCode.NONE
        return decode_assignment(call.response.assignment)

    def classic_group(self, *owned: Partitions, instances: tuple[str | None, ...] = ()) -> list[str]:
        """A stable classic group in generation 1, whose members have these partitions."""
        calls = []
        for index, _ in enumerate(owned):
            instance = instances[index] if instances else None
            call = self.rejoin("", instance=instance)
            calls.append(call if instance is not None else self.rejoin(call.response.member_id))
        self.sleep(2 * self.settings.group_initial_rebalance_delay_ms)
        members = [call.response.member_id for call in calls]
        targets = {member: encode_assignment(theirs) for member, theirs in zip(members, owned, strict=True)}
        for index, member in reversed(list(enumerate(members))):  # the first leads
            self.sync(member, 1, targets, instance=instances[index] if instances else None)
        assert self.state() == "Stable"
        return members

    # What tests ask ---------------------------------------------------------------------------------------------

    def kind(self) -> str:
        (listed,) = self.shard.list_groups()
        return listed.group_type

    def never_expire(self, member_id: str) -> None:
        """A member of the consumer protocol has revoked all, and its session goes on as if it sent heartbeats."""
        self.consumer_settings = replace(self.consumer_settings, session_timeout_ms=10_000_000)
        group = self.shard.consumer.get(GROUP)
        assert group is not None
        epoch = group.members[member_id].current.epoch
        assert not self.beat(member_id, epoch, owned=frozenset()).error_code

    def held(self) -> dict[str, Partitions]:
        """Who has what in the consumer group, what is to be revoked included."""
        group = self.shard.consumer.get(GROUP)
        assert group is not None
        return {
            member_id: frozenset(TopicPartition(NAMES[at.topic_id], at.partition) for at, _ in member.current.held())
            for member_id, member in group.members.items()
        }


def told(response: ConsumerGroupHeartbeatResponse) -> Partitions:
    """The partitions in the answer to a heartbeat."""
    assert response.assignment is not None
    return frozenset(
        TopicPartition(NAMES[topic.topic_id], each)
        for topic in response.assignment.topic_partitions
        for each in topic.partitions
    )


def snapshot(shard: GroupShard) -> object:
    """All that the log holds of the group, whatever it is."""
    classic, consumer = shard.classic.get(GROUP), shard.consumer.get(GROUP)
    found: list[object] = []
    if classic is not None:
        members = {
            member.member_id: (member.instance_id, member.session_timeout_ms, member.assignment)
            for member in classic.members.values()
        }
        found += ["classic", classic.generation, classic.protocol_type, classic.protocol, classic.leader, members]
    if consumer is not None:
        found += ["consumer", consumer.epoch, consumer.assignment_epoch, consumer.metadata_hash]
        found += [dict(consumer.target), consumer.static_ids]
        found.append({name: (member.metadata, member.current) for name, member in consumer.members.items()})
    return found


def assert_replayed(driver: Driver) -> None:
    """The log makes the same group; but a rebalance of a classic group is in memory alone."""
    classic = driver.shard.classic.get(GROUP)
    if classic is None or classic.state is GroupState.STABLE:
        assert snapshot(driver.shard) == snapshot(driver.replayed())
