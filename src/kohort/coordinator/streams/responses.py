"""Responses to heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.streams.draft import Draft
from kohort.protocol.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse, TaskIds
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.endpoints import Instance, partitions_by_endpoint
from kohort.streams.tasks import Role, TaskId, task_ids

_REPORTS_OFFSETS: Final = 1
"""First version of the heartbeat whose clients report task offsets; older ones get no settings for that."""


def heartbeat_response(
    draft: Draft,
    member_id: str,
    member_epoch: int,
    statuses: list[Status],
    tasks: Mapping[TaskId, Role] | None,
    version: int,
) -> StreamsGroupHeartbeatResponse:
    """Returns the response to a member.

    Args:
        tasks: its tasks; None if they are as before.
        version: of its heartbeats.
    """
    settings = draft.settings
    active, standby, warmup = (None, None, None) if tasks is None else (task_ids(TaskIds, tasks, role) for role in Role)
    response = StreamsGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        status=statuses,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        endpoint_information_epoch=draft.soft.endpoint_epoch,
        partitions_by_user_endpoint=None,
    )
    if version >= _REPORTS_OFFSETS:
        response.acceptable_recovery_lag = settings.acceptable_recovery_lag
        response.task_offset_interval_ms = settings.task_offset_interval_ms
    return response


def endpoint_map(
    draft: Draft, configured: ConfiguredTopology
) -> list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]:
    """Returns the partitions of each instance, by endpoint."""
    return partitions_by_endpoint(
        (
            Instance(metadata.endpoint.host, metadata.endpoint.port, current.assigned)
            for metadata, current in draft.members().values()
            if metadata.endpoint is not None
        ),
        configured,
    )
