"""The statuses that members get: stale topology, missing topics, shutdown, delayed assignment, missing client tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.protocol.messages.streams_group_heartbeat import Status
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import Role, TaskId

_KNOWS_MISSING_TAGS: Final = 1  # first version of StreamsGroupHeartbeat whose clients know MISSING_CLIENT_TAGS


def statuses(draft: Draft, metadata: StreamsMetadata, tasks: Mapping[TaskId, Role], version: int) -> list[Status]:
    """Returns the statuses of a member with this metadata and these tasks.

    Kafka Streams stops working while an assignment is delayed, so members that have tasks don't get that status.
    """
    soft, topology_epoch = draft.soft, metadata.topology_epoch
    found = []
    if draft.topology is not None and topology_epoch < draft.topology.epoch:
        found.append(
            Status(
                status_code=StatusCode.STALE_TOPOLOGY,
                status_detail=f"The member runs topology {topology_epoch}, the group runs {draft.topology.epoch}.",
            )
        )
    if soft.configured is not None and (problem := soft.configured.problem) is not None:
        found.append(Status(status_code=problem.code, status_detail=problem.detail))
    if soft.shutdown_by is not None:
        found.append(
            Status(
                status_code=StatusCode.SHUTDOWN_APPLICATION,
                status_detail=f"Member {soft.shutdown_by} asked that the whole application shut down.",
            )
        )
    if draft.assignment_epoch != draft.epoch and not tasks:
        why = "more members may join" if soft.delayed else "tasks are placed soon"
        found.append(Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=f"There are no tasks yet: {why}."))
    if version >= _KNOWS_MISSING_TAGS and (
        missing := [tag for tag in draft.settings.rack_aware_assignment_tags if tag not in metadata.tags]
    ):
        why = f"Standbys are spread over client tags that the member doesn't have: {', '.join(missing)}."
        found.append(Status(status_code=StatusCode.MISSING_CLIENT_TAGS, status_detail=why))
    return found
