"""Streams groups in the log: records of types 17 and 19 to 23 of `__consumer_offsets`, as Kafka 4.2 writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.step import Record
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.protocol.stored import (
    streams_group_current_member_assignment as current,
)
from kohort.protocol.stored import (
    streams_group_member_metadata as member,
)
from kohort.protocol.stored import (
    streams_group_metadata as metadata,
)
from kohort.protocol.stored import (
    streams_group_target_assignment_member as target,
)
from kohort.protocol.stored import (
    streams_group_target_assignment_metadata as target_epoch,
)
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyKey
from kohort.streams.endpoint import Endpoint
from kohort.streams.tasks import Role, TaskId, by_subtopology, task_ids, tasks_of
from kohort.streams.topology import Topology
from kohort.streams.topology_messages import topology_record as topology_value

_STATES: Final = {MemberState.STABLE: 1, MemberState.UNREVOKED: 2, MemberState.UNRELEASED: 3}
_STATE_OF: Final = {number: state for state, number in _STATES.items()}


def group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> Record:
    """Type 17: the group's epoch, and the state that it was bumped for."""
    return Record(
        metadata.StreamsGroupMetadataKey(group_id=group_id),
        metadata.StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                metadata.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
            ],
        ),
    )


def member_record(group_id: str, member_id: str, given: StreamsMetadata) -> Record:
    """Type 19: a member's metadata."""
    endpoint = given.endpoint
    return Record(
        member.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        member.StreamsGroupMemberMetadataValue(
            instance_id=given.instance_id,
            rack_id=given.rack_id,
            client_id=given.client_id,
            client_host=given.client_host,
            rebalance_timeout_ms=given.rebalance_timeout_ms,
            topology_epoch=given.topology_epoch,
            process_id=given.process_id,
            user_endpoint=None if endpoint is None else member.Endpoint(host=endpoint.host, port=endpoint.port),
            client_tags=[member.KeyValue(key=key, value=given.tags[key]) for key in sorted(given.tags)],
        ),
    )


def metadata_of(value: member.StreamsGroupMemberMetadataValue) -> StreamsMetadata:
    """Returns the metadata of a record of type 19."""
    endpoint = value.user_endpoint
    return StreamsMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        tags={tag.key: tag.value for tag in value.client_tags},
    )


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int = 0) -> Record:
    """Type 20: the epoch of the target, and when it was made, in ms since 1970."""
    return Record(
        target_epoch.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        target_epoch.StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=assigned_at
        ),
    )


def target_record(group_id: str, member_id: str, tasks: Mapping[TaskId, Role]) -> Record:
    """Type 21: a member's target."""
    active, standby, warmup = (task_ids(target.TaskIds, tasks, role) for role in Role)
    return Record(
        target.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        target.StreamsGroupTargetAssignmentMemberValue(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup),
    )


def target_of(value: target.StreamsGroupTargetAssignmentMemberValue) -> dict[TaskId, Role]:
    """Returns the target of a record of type 21."""
    return tasks_of(value.active_tasks, value.standby_tasks, value.warmup_tasks)


def current_assignment_record(group_id: str, member_id: str, assignment: CurrentAssignment[TaskId, Role]) -> Record:
    """Type 22: a member's current assignment."""
    given, revoking = assignment.assigned, assignment.revoking
    return Record(
        current.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        current.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=assignment.epoch,
            previous_member_epoch=assignment.previous_epoch,
            state=_STATES[assignment.state],
            active_tasks=_current(given, Role.ACTIVE, assignment.assignment_epochs),
            standby_tasks=_current(given, Role.STANDBY),
            warmup_tasks=_current(given, Role.WARMUP),
            active_tasks_pending_revocation=_current(revoking, Role.ACTIVE, assignment.assignment_epochs),
            standby_tasks_pending_revocation=_current(revoking, Role.STANDBY),
            warmup_tasks_pending_revocation=_current(revoking, Role.WARMUP),
        ),
    )


def read_current_assignment(value: current.StreamsGroupCurrentMemberAssignmentValue) -> CurrentAssignment[TaskId, Role]:
    """Returns the current assignment of a record of type 22.

    A state that isn't known, a newer server's, counts as waiting for others: the member's next heartbeat finds out.
    Tasks of records without assignment epochs, an older server's, count as assigned in the member's epoch.
    """
    assignment_epochs = {}
    for ids in (*value.active_tasks, *value.active_tasks_pending_revocation):
        epochs = ids.assignment_epochs or (value.member_epoch,) * len(ids.partitions)
        for partition, epoch in zip(ids.partitions, epochs, strict=True):
            assignment_epochs[TaskId(ids.subtopology_id, partition)] = epoch
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        _STATE_OF.get(value.state, MemberState.UNRELEASED),
        tasks_of(value.active_tasks, value.standby_tasks, value.warmup_tasks),
        tasks_of(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
        ),
        assignment_epochs,
    )


def topology_record(group_id: str, topology: Topology) -> Record:
    """Type 23: the topology that the group runs."""
    return Record(StreamsGroupTopologyKey(group_id=group_id), topology_value(topology))


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    return [
        Record(current.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(target.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(member.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[Record]:
    """Returns the tombstones of a group without members."""
    return [
        Record(target_epoch.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        Record(metadata.StreamsGroupMetadataKey(group_id=group_id), None),
        Record(StreamsGroupTopologyKey(group_id=group_id), None),
    ]


def _current(
    tasks: Mapping[TaskId, Role], role: Role, assignment_epochs: Mapping[TaskId, int] | None = None
) -> list[current.TaskIds]:
    """Tasks of one role; with the epochs in which they were given, where these are kept."""
    return [
        current.TaskIds(
            subtopology_id=name,
            partitions=partitions,
            assignment_epochs=()
            if assignment_epochs is None
            else tuple(assignment_epochs[TaskId(name, partition)] for partition in partitions),
        )
        for name, partitions in by_subtopology(task for task, has in tasks.items() if has is role).items()
    ]
