"""Descriptions of groups, for StreamsGroupDescribe."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.group import Member
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.topology_description import DescriptionStatus
from kohort.protocol.messages.streams_group_describe import (
    Assignment,
    Endpoint,
    KeyValue,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
)
from kohort.protocol.messages.streams_group_topology_description_update import TopologyDescription
from kohort.streams.configured_topology import ConfiguredSubtopology, configure
from kohort.streams.task_offsets import task_offsets
from kohort.streams.tasks import Role, TaskId, task_ids
from kohort.streams.topology import Subtopology
from kohort.streams.topology_messages import described_topics

_Group = StreamsGroupDescribeResponse.Group
_Topology = StreamsGroupDescribeResponse.Group.Topology


def describe(group: StreamsGroup, cluster: Cluster, assignor_name: str, *, with_description: bool) -> _Group:
    """Describes a group.

    Args:
        assignor_name: the assignor that places its tasks next.
        with_description: whether to say how the topology's nodes are connected.
    """
    status, description = _description(group) if with_description else (DescriptionStatus.NOT_REQUESTED, None)
    return _Group(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, cluster),
        members=[_member(group, member) for member in group.members.values()],
        topology_description=description,
        topology_description_status=status,
        assignor_name=assignor_name,
    )


def _description(group: StreamsGroup) -> tuple[DescriptionStatus, TopologyDescription | None]:
    described = group.soft.described
    if described is None or group.topology is None or described.epoch != group.topology.epoch:
        return DescriptionStatus.NOT_STORED, None
    if described.description is None:
        return DescriptionStatus.ERROR, None
    return DescriptionStatus.AVAILABLE, described.description


def _topology(group: StreamsGroup, cluster: Cluster) -> _Topology | None:
    """Returns the topology with its topics resolved if they are in order, otherwise as members brought it."""
    if group.topology is None:
        return None
    configured = group.configured or configure(group.topology, cluster.partitions, cluster.matching)
    resolved = configured.subtopologies if configured.ready else {}
    return _Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            _subtopology(name, each, resolved.get(name)) for name, each in group.topology.subtopologies.items()
        ],
    )


def _subtopology(name: str, each: Subtopology, resolved: ConfiguredSubtopology | None) -> _Topology.Subtopology:
    sources, repartition, changelogs = tuple(each.source_topics), each.repartition_sources, each.changelogs
    if resolved is not None:
        repartition, changelogs = resolved.repartition_sources, resolved.changelogs
        internal = {topic.name for topic in repartition}
        sources = tuple(topic for topic in resolved.sources if topic not in internal)
    return _Topology.Subtopology(
        subtopology_id=name,
        source_topics=sources,
        repartition_sink_topics=tuple(each.repartition_sinks),
        state_changelog_topics=described_topics(changelogs),
        repartition_source_topics=described_topics(repartition),
    )


def _member(group: StreamsGroup, member: Member[StreamsMetadata, TaskId, Role]) -> _Group.Member:
    metadata, endpoint = member.metadata, member.metadata.endpoint
    return _Group.Member(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=metadata.tags[key]) for key in sorted(metadata.tags)],
        task_offsets=task_offsets(TaskOffset, group.soft.offsets.offsets_of(member.member_id)),
        task_end_offsets=task_offsets(TaskOffset, group.soft.offsets.ends_of(member.member_id)),
        assignment=_assignment(member.current.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, {})),
        is_classic=False,
    )


def _assignment(tasks: Mapping[TaskId, Role]) -> Assignment:
    active, standby, warmup = (task_ids(TaskIds, tasks, role) for role in Role)
    return Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
