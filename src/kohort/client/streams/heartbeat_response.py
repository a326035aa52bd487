"""Responses to heartbeats, parsed and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.protocol.heartbeat_wishes import Grant, grant_of
from kohort.protocol.messages.streams_group_heartbeat import Status as WireStatus
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.protocol.messages.streams_group_heartbeat import TopicPartition as WirePartitions
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId, tasks_of


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A response without an error; None stands for what is as before."""

    epoch: int
    heartbeat_interval_ms: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    tasks: dict[TaskId, Role] | None
    statuses: tuple[Status, ...] | None
    endpoint_epoch: int
    endpoints: dict[Endpoint, EndpointPartitions] | None
    grant: Grant | None


def parse_response(response: StreamsGroupHeartbeatResponse, version: int) -> ParsedResponse:
    """Parses a response without an error.

    Raises:
        ValueError: it makes no sense.
    """
    if response.member_epoch < 0:
        raise ValueError(f"member epoch {response.member_epoch}")
    if response.heartbeat_interval_ms <= 0:
        raise ValueError(f"heartbeat interval {response.heartbeat_interval_ms} ms")
    active, standby, warmup = response.active_tasks, response.standby_tasks, response.warmup_tasks
    tasks = None
    if active is not None and standby is not None and warmup is not None:
        tasks = tasks_of(active, standby, warmup)
        if len(tasks) < sum(len(ids.partitions) for ids in (*active, *standby, *warmup)):
            raise ValueError("a task is listed twice")
        if any(task.partition < 0 for task in tasks):
            raise ValueError("a task is negative")
    elif active is not None or standby is not None or warmup is not None:
        raise ValueError("tasks of some roles, but not of all")
    return ParsedResponse(
        epoch=response.member_epoch,
        heartbeat_interval_ms=response.heartbeat_interval_ms,
        task_offset_interval_ms=max(0, response.task_offset_interval_ms),
        acceptable_recovery_lag=max(
            0, response.acceptable_recovery_lag if version else response.acceptable_recovery_lag_v0
        ),
        tasks=tasks,
        statuses=None if response.status is None else statuses_of(response.status),
        endpoint_epoch=response.endpoint_information_epoch,
        endpoints=None
        if response.partitions_by_user_endpoint is None
        else endpoints_of(response.partitions_by_user_endpoint),
        grant=grant_of(response.unknown_tags),
    )


def statuses_of(listed: Iterable[WireStatus]) -> tuple[Status, ...]:
    """Returns the statuses that a message lists; codes that aren't known here stay numbers."""
    return tuple(Status(_code(status.status_code), status.status_detail) for status in listed)


def _code(code: int) -> StatusCode | int:
    try:
        return StatusCode(code)
    except ValueError:
        return code


def endpoints_of(
    listed: Iterable[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint],
) -> dict[Endpoint, EndpointPartitions]:
    """Returns partitions by endpoint; several entries of a message may be of one instance."""
    found: dict[Endpoint, EndpointPartitions] = {}
    nothing = EndpointPartitions(frozenset(), frozenset())
    for of in listed:
        endpoint = Endpoint(of.user_endpoint.host, of.user_endpoint.port)
        active, standby = found.get(endpoint, nothing)
        found[endpoint] = EndpointPartitions(
            active | _partitions(of.active_partitions), standby | _partitions(of.standby_partitions)
        )
    return found


def _partitions(listed: Iterable[WirePartitions]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(of.topic, partition) for of in listed for partition in of.partitions)
