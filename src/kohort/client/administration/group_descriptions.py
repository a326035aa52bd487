"""Translates the responses of the four describe APIs into group descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from kohort.client.administration.group_types import (
    GroupDescription,
    GroupMember,
    GroupType,
    StreamsMemberState,
)
from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ProtocolError
from kohort.protocol.message import Message
from kohort.protocol.messages import consumer_group_describe as consumer
from kohort.protocol.messages import share_group_describe as share
from kohort.protocol.messages import streams_group_describe as streams
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kohort.protocol.messages.describe_groups import DescribeGroupsResponse
from kohort.streams.task_offsets import offsets_by_task
from kohort.streams.tasks import Role, TaskId, tasks_of
from kohort.streams.topology import Subtopology, Topology
from kohort.streams.topology_messages import internal_topics

M = TypeVar("M", bound=Message)

_VERSION_SIZE: Final = 2
"""Bytes of the version before a subscription or assignment."""

_CLASSIC_MEMBER: Final = 0
"""`member_type` of a consumer group's member with the classic protocol."""


def classic_group(group: DescribeGroupsResponse.Group, coordinator: Broker) -> GroupDescription:
    """Returns a classic group; consumers' subscriptions and assignments are decoded (the broker doesn't)."""
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.protocol_data,
        protocol_type=group.protocol_type,
        epoch=None,
        assignment_epoch=None,
        members=_sorted(_classic_member(member, group.protocol_type) for member in group.members),
    )


def consumer_group(group: consumer.ConsumerGroupDescribeResponse.Group, coordinator: Broker) -> GroupDescription:
    """Returns a consumer group (KIP-848)."""
    members = (
        GroupMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host,
            rack=member.rack_id,
            epoch=member.member_epoch,
            classic=member.member_type == _CLASSIC_MEMBER,
            topics=member.subscribed_topic_names,
            pattern=member.subscribed_topic_regex or None,
            partitions=_partitions(member.assignment),
            target=_partitions(member.target_assignment),
        )
        for member in group.members
    )
    return _assigned_group(group, GroupType.CONSUMER, coordinator, members)


def share_group(group: share.ShareGroupDescribeResponse.Group, coordinator: Broker) -> GroupDescription:
    """Returns a share group (KIP-932)."""
    members = (
        GroupMember(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            host=member.client_host,
            rack=member.rack_id,
            epoch=member.member_epoch,
            classic=False,
            topics=member.subscribed_topic_names,
            pattern=None,
            partitions=_partitions(member.assignment),
            target=None,
        )
        for member in group.members
    )
    return _assigned_group(group, GroupType.SHARE, coordinator, members)


def streams_group(group: streams.StreamsGroupDescribeResponse.Group, coordinator: Broker) -> GroupDescription:
    """Returns a streams group (KIP-1071)."""
    topology = None if group.topology is None else _topology(group.topology)
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.STREAMS,
        state=group.group_state,
        coordinator=coordinator,
        assignor="",
        protocol_type="streams",
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=_sorted(_streams_member(member, topology) for member in group.members),
        topology_epoch=None if group.topology is None else group.topology.epoch,
        topology=topology,
    )


def _assigned_group(
    group: consumer.ConsumerGroupDescribeResponse.Group | share.ShareGroupDescribeResponse.Group,
    kind: GroupType,
    coordinator: Broker,
    members: Iterable[GroupMember],
) -> GroupDescription:
    """Returns a group whose coordinator assigns partitions."""
    return GroupDescription(
        group_id=group.group_id,
        type=kind,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.assignor_name,
        protocol_type=kind.value,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=_sorted(members),
    )


def _sorted(members: Iterable[GroupMember]) -> tuple[GroupMember, ...]:
    return tuple(sorted(members, key=lambda member: member.member_id))


def _classic_member(member: DescribeGroupsResponse.Group.Member, protocol_type: str) -> GroupMember:
    topics: tuple[str, ...] = ()
    rack = None
    partitions: tuple[TopicPartition, ...] = ()
    streams = None
    if protocol_type == PROTOCOL_TYPE:
        from kohort.client.administration.classic_streams_members import streams_state

        streams = streams_state(member)
    elif protocol_type == "consumer":
        subscription = _decoded(ConsumerProtocolSubscription, member.member_metadata)
        if subscription is not None:
            topics, rack = subscription.topics, subscription.rack_id or None
        assignment = _decoded(ConsumerProtocolAssignment, member.member_assignment)
        if assignment is not None:
            partitions = tuple(
                sorted(
                    TopicPartition(each.topic, number)
                    for each in assignment.assigned_partitions
                    for number in each.partitions
                )
            )
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        rack=rack,
        epoch=None,
        classic=True,
        topics=topics,
        pattern=None,
        partitions=partitions,
        target=None,
        streams=streams,
        has_metadata=bool(member.member_metadata),
    )


def _decoded(kind: type[M], data: bytes) -> M | None:
    """Decodes a member's subscription or assignment; None if it can't be read, since a group may use other bytes.

    Newer versions only add fields at the end, so they are read as the newest known one.
    """
    if len(data) < _VERSION_SIZE:
        return None
    version = min(int.from_bytes(data[:_VERSION_SIZE], "big", signed=True), kind.__message__.versions[-1])
    try:
        return kind.read(data, _VERSION_SIZE, version)[0]
    except ProtocolError:
        return None


def _partitions(assignment: consumer.Assignment | share.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, number)
            for topic in assignment.topic_partitions
            for number in topic.partitions
        )
    )


def _streams_member(
    member: streams.StreamsGroupDescribeResponse.Group.Member, topology: Topology | None
) -> GroupMember:
    tasks = _tasks(member.assignment)
    target = _tasks(member.target_assignment)
    endpoint = member.user_endpoint
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        rack=member.rack_id,
        epoch=member.member_epoch,
        classic=member.is_classic,
        topics=() if topology is None else tuple(sorted(topology.readers)),
        pattern=None,
        partitions=_inputs(tasks, topology),
        target=_inputs(target, topology),
        streams=StreamsMemberState(
            process_id=member.process_id,
            endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            tags={tag.key: tag.value for tag in member.client_tags},
            topology_epoch=member.topology_epoch,
            tasks=tasks,
            target_tasks=target,
            task_offsets=offsets_by_task(member.task_offsets),
            task_end_offsets=offsets_by_task(member.task_end_offsets),
        ),
    )


def _tasks(assignment: streams.Assignment) -> dict[TaskId, Role]:
    return tasks_of(assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)


def _inputs(tasks: Mapping[TaskId, Role], topology: Topology | None) -> tuple[TopicPartition, ...]:
    """Returns the inputs of active tasks; a topic may have fewer partitions than its subtopology has tasks."""
    known = {} if topology is None else topology.subtopologies
    return tuple(
        sorted(
            TopicPartition(topic, number)
            for (name, number), role in tasks.items()
            if role is Role.ACTIVE and name in known
            for topic in known[name].inputs
        )
    )


def _topology(topology: streams.StreamsGroupDescribeResponse.Group.Topology) -> Topology | None:
    if topology.subtopologies is None:
        return None
    return Topology(
        {
            each.subtopology_id: Subtopology(
                source_topics=each.source_topics,
                repartition_sinks=each.repartition_sink_topics,
                repartition_sources=internal_topics(each.repartition_source_topics),
                changelogs=internal_topics(each.state_changelog_topics),
            )
            for each in topology.subtopologies
        },
        topology.epoch,
    )
