"""Assignments: the tasks of a member of a classic streams group, and what else its leader tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kohort.client.streams.classic.subscription import TopologyId
from kohort.client.streams.classic.versions import FIRST, LATEST, PREFIX, ErrorCode
from kohort.client.streams.events import EndpointPartitions
from kohort.client.streams.heartbeat_response import endpoints_of, statuses_of
from kohort.protocol.messages import streams_group_heartbeat as wire
from kohort.protocol.messages.streams_assignment import StreamsAssignment
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status
from kohort.streams.tasks import Role, TaskId, task_ids, tasks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a member gets.

    Attributes:
        version: the version that it was written in.
        supported: the newest version that the leader knows.
        common: the newest version that all members know; `versions.version_to_join_with` says what follows from it.
        error: with SUBSCRIPTION_TOO_NEW all else means nothing, and the member keeps what it has; with
            SUBSCRIPTION_UNREADABLE there are no tasks.
        join_again: others wait for tasks that the member has, and that aren't in `tasks`, or in another role: it joins
            again as soon as they are closed. If it has none, at once.
        tasks: all that it is to have. What it runs as active and hasn't here, it closes before it joins again.
        acceptable_lag: records that a warm-up may lack and still take its task over; the member joins again when one
            of its warm-ups gets there. None if the leader doesn't say.
        probing_ms: time until it is to join again, to see whether others' warm-ups are ready; None if it needn't.
        topology: the one that the member ran when it was given these tasks: a static member that comes back may run
            another one. None if the leader doesn't say.
    """

    version: int = LATEST
    supported: int = LATEST
    common: int = LATEST
    error: ErrorCode = ErrorCode.NONE
    join_again: bool = False
    statuses: tuple[Status, ...] = ()
    tasks: Mapping[TaskId, Role] = field(default_factory=dict)
    endpoints: Mapping[Endpoint, EndpointPartitions] = field(default_factory=dict)
    acceptable_lag: int | None = None
    probing_ms: int | None = None
    topology: TopologyId | None = None


def encode_assignment(
    assignment: Assignment, endpoints: Sequence[wire.StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint] = ()
) -> bytes:
    """Returns the bytes for SyncGroup, in the assignment's version.

    Args:
        endpoints: the same as `assignment.endpoints`, as a message; made once for all members.

    Raises:
        ProtocolError: there are warm-ups in a version that has none.
    """
    tasks, topology = assignment.tasks, assignment.topology
    message = StreamsAssignment(
        latest_supported_version=assignment.supported,
        common_version=assignment.common,
        error_code=assignment.error,
        join_again=assignment.join_again,
        status=[wire.Status(status_code=status.code, status_detail=status.detail) for status in assignment.statuses],
        active_tasks=task_ids(wire.TaskIds, tasks, Role.ACTIVE),
        standby_tasks=task_ids(wire.TaskIds, tasks, Role.STANDBY),
        warmup_tasks=task_ids(wire.TaskIds, tasks, Role.WARMUP),
        partitions_by_user_endpoint=list(endpoints),
        acceptable_recovery_lag=-1 if assignment.acceptable_lag is None else assignment.acceptable_lag,
        next_probing_rebalance_ms=-1 if assignment.probing_ms is None else assignment.probing_ms,
        topology_epoch=-1 if topology is None else topology.epoch,
        topology_fingerprint=0 if topology is None else topology.fingerprint,
    )
    return assignment.version.to_bytes(PREFIX, "big") + message.encode(assignment.version)


def decode_assignment(data: bytes, latest: int = LATEST) -> Assignment:
    """Reads an assignment. A newer leader writes no newer version than the member's.

    Args:
        latest: the newest version that the reader knows.

    Raises:
        ValueError: it can't be read, or makes no sense; says why.
    """
    version = int.from_bytes(data[:PREFIX], "big", signed=True)
    if not FIRST <= version <= latest:
        raise ValueError(f"{len(data)} bytes of version {version} are no assignment in versions {FIRST} to {latest}")
    message = StreamsAssignment.decode(data[PREFIX:], version)
    listed = (*message.active_tasks, *message.standby_tasks, *message.warmup_tasks)
    tasks = tasks_of(message.active_tasks, message.standby_tasks, message.warmup_tasks)
    if len(tasks) < sum(len(ids.partitions) for ids in listed):
        raise ValueError("a task is listed twice")
    if any(task.partition < 0 for task in tasks):
        raise ValueError("a task is negative")
    return Assignment(
        version=version,
        supported=message.latest_supported_version,
        common=message.common_version,
        error=ErrorCode(message.error_code),
        join_again=message.join_again,
        statuses=statuses_of(message.status),
        tasks=tasks,
        endpoints=endpoints_of(message.partitions_by_user_endpoint),
        acceptable_lag=_or_none(message.acceptable_recovery_lag),
        probing_ms=_or_none(message.next_probing_rebalance_ms),
        topology=(
            None if message.topology_epoch < 0 else TopologyId(message.topology_epoch, message.topology_fingerprint)
        ),
    )


def _or_none(number: int) -> int | None:
    return None if number < 0 else number
