"""Descriptions of groups, for ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.group import Member
from kohort.coordinator.modern.partitions import Role, by_topic
from kohort.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from kohort.protocol.topic_partition import TopicIdPartition

_Group = ConsumerGroupDescribeResponse.Group
_CLASSIC, _CONSUMER = 0, 1


def describe(group: ConsumerGroup, cluster: Cluster, default_assignor: str) -> _Group:
    """Describes a group; the members that came last come first, as Kafka's tests expect."""
    return _Group(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.subscriptions.assignor(default_assignor),
        members=[_member(group, member, cluster) for member in reversed(group.members.values())],
    )


def _member(
    group: ConsumerGroup, member: Member[ConsumerMetadata, TopicIdPartition, Role], cluster: Cluster
) -> _Group.Member:
    """What it has to revoke counts as assigned: it may still work on it."""
    metadata, current = member.metadata, member.current
    return _Group.Member(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=metadata.topics,
        subscribed_topic_regex=metadata.regex,
        assignment=_assignment({*current.assigned, *current.revoking}, cluster),
        target_assignment=_assignment(group.target.get(member.member_id, {}), cluster),
        member_type=_CONSUMER if metadata.classic is None else _CLASSIC,
    )


def _assignment(partitions: Iterable[TopicIdPartition], cluster: Cluster) -> Assignment:
    """Topics that were deleted are left out."""
    named = ((topic_id, cluster.name_of(topic_id), numbers) for topic_id, numbers in by_topic(partitions).items())
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
            for topic_id, name, numbers in named
            if name is not None
        ]
    )
