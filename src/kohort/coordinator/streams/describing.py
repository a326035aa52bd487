"""What StreamsGroupDescribe tells of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kohort.coordinator.placement.model import Task
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMember
from kohort.coordinator.streams.roles import Role
from kohort.coordinator.streams.tasks import grouped
from kohort.coordinator.streams.topology import InternalTopic
from kohort.protocol.messages.streams_group_describe import (
    Assignment,
    Endpoint,
    KeyValue,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
    TopicInfo,
)

__all__ = ["describe"]

_Group = StreamsGroupDescribeResponse.Group
_Topology = StreamsGroupDescribeResponse.Group.Topology


def describe(group: StreamsGroup) -> _Group:
    """All there is to know of a group."""
    return _Group(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(group, member) for member in group.members.values()],
    )


def _topology(group: StreamsGroup) -> _Topology | None:
    """The topology with its topics resolved, where they are in order; as it was told otherwise."""
    if group.topology is None:
        return None
    if group.configured is not None and group.configured.ready:
        return _Topology(
            epoch=group.configured.epoch,
            subtopologies=[
                _Topology.Subtopology(
                    subtopology_id=each.id,
                    source_topics=tuple(
                        name for name in each.sources if name not in {topic.name for topic in each.repartition_sources}
                    ),
                    repartition_sink_topics=each.repartition_sinks,
                    state_changelog_topics=_topics(each.changelogs),
                    repartition_source_topics=_topics(each.repartition_sources),
                )
                for each in group.configured.subtopologies.values()
            ],
        )
    return _Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            _Topology.Subtopology(
                subtopology_id=told.id,
                source_topics=told.source_topics,
                repartition_sink_topics=told.repartition_sinks,
                state_changelog_topics=_topics(told.changelogs),
                repartition_source_topics=_topics(told.repartition_sources),
            )
            for told in group.topology.subtopologies.values()
        ],
    )


def _topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor or 0,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> _Group.Member:
    said, endpoint = member.metadata, member.metadata.endpoint
    return _Group.Member(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        topology_epoch=said.topology_epoch,
        process_id=said.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=said.tags[key]) for key in sorted(said.tags)],
        task_offsets=_offsets(group.offsets.offsets_of(member.member_id)),
        task_end_offsets=_offsets(group.offsets.ends_of(member.member_id)),
        assignment=_assignment(member.current.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, {})),
        is_classic=False,
    )


def _assignment(tasks: Mapping[Task, Role]) -> Assignment:
    active, standby, warmup = (
        [TaskIds(subtopology_id=name, partitions=partitions) for name, partitions in grouped(tasks, role)]
        for role in Role
    )
    return Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _offsets(offsets: Mapping[Task, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=task.subtopology, partition=task.partition, offset=offsets[task])
        for task in sorted(offsets)
    ]
