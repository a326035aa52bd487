"""What members are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.endpoints import Instance, partitions_by_endpoint
from kohort.coordinator.streams.internal_topics import ConfiguredTopology
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.protocol.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse, TaskIds
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import Role, TaskId, task_ids

__all__ = ["answer", "endpoint_map", "statuses"]

_KNOWS_MISSING_TAGS: Final = 1  # first version of StreamsGroupHeartbeat whose clients know status 6
_INT32_MAX: Final = 2**31 - 1


def answer(
    draft: Draft,
    member_id: str,
    member_epoch: int,
    told: list[Status],
    tasks: Mapping[TaskId, Role] | None,
) -> StreamsGroupHeartbeatResponse:
    """The answer to a member.

    Args:
        draft: the group.
        member_id: whose answer.
        member_epoch: its epoch.
        told: what there is to know.
        tasks: what it has now; None if that is as before.
    """
    settings = draft.settings
    active, standby, warmup = (None, None, None) if tasks is None else (task_ids(TaskIds, tasks, role) for role in Role)
    return StreamsGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        acceptable_recovery_lag_v0=min(settings.acceptable_recovery_lag, _INT32_MAX),
        acceptable_recovery_lag=settings.acceptable_recovery_lag,
        task_offset_interval_ms=settings.task_offset_interval_ms,
        status=told,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        endpoint_information_epoch=draft.group.endpoint_epoch,
        partitions_by_user_endpoint=None,
    )


def statuses(draft: Draft, metadata: StreamsMetadata, tasks: Mapping[TaskId, Role], version: int) -> list[Status]:
    """What a member that says this about itself and has these tasks should know.

    Kafka Streams stops working while an assignment is delayed, so those who have tasks to go on with aren't told.
    """
    group, topology_epoch = draft.group, metadata.topology_epoch
    told = []
    if draft.topology is not None and topology_epoch < draft.topology.epoch:
        told.append(
            Status(
                status_code=StatusCode.STALE_TOPOLOGY,
                status_detail=f"The member runs topology {topology_epoch}, the group runs {draft.topology.epoch}.",
            )
        )
    if group.configured is not None and (problem := group.configured.problem) is not None:
        told.append(Status(status_code=problem.code, status_detail=problem.detail))
    if group.shutdown_by is not None:
        told.append(
            Status(
                status_code=StatusCode.SHUTDOWN_APPLICATION,
                status_detail=f"Member {group.shutdown_by} asked that the whole application shut down.",
            )
        )
    if draft.assignment_epoch != draft.epoch and not tasks:
        why = "more members may join" if group.delayed else "the tasks are being placed"
        told.append(Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=f"There are no tasks yet: {why}."))
    if version >= _KNOWS_MISSING_TAGS and (
        missing := [tag for tag in draft.settings.rack_aware_assignment_tags if tag not in metadata.tags]
    ):
        why = f"Standbys are spread over client tags that the member doesn't have: {', '.join(missing)}."
        told.append(Status(status_code=StatusCode.MISSING_CLIENT_TAGS, status_detail=why))
    return told


def endpoint_map(
    draft: Draft, configured: ConfiguredTopology
) -> list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]:
    """Which instance has which partitions."""
    return partitions_by_endpoint(
        (
            Instance(metadata.endpoint.host, metadata.endpoint.port, current.assigned)
            for metadata, current in draft.members().values()
            if metadata.endpoint is not None
        ),
        configured,
    )
