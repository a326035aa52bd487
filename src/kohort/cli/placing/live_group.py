"""A streams group out of a running cluster: Kafka 4.1 or later, or Kohort."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from kohort.cli.placing.wire import Address, BrokerError, Connection, kafka_error
from kohort.coordinator.placement import check
from kohort.coordinator.placement.model import Group, Member, SubtopologyTasks
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
)
from kohort.streams.tasks import TaskId

__all__ = ["read_live_group"]

Described = StreamsGroupDescribeResponse.Group

_GROUP: Final = 32
"""The resource type of groups, among those that have configurations."""

_PAUSE: Final = 0.2
"""Seconds between two questions to a coordinator that isn't there yet."""


def read_live_group(bootstrap: Address, group_id: str, seconds: float) -> tuple[Group, list[str]]:
    """The group as it is now, and what couldn't be found out about it, in sentences.

    What members have is what they have been given so far; a task that is on its way from one to another is nobody's.

    Args:
        bootstrap: any broker of the cluster.
        group_id: the group, which is the application id.
        seconds: the time it may take.

    Raises:
        BrokerError: the cluster can't be reached, or the group isn't there or can't be placed.
    """
    deadline = time.monotonic() + seconds
    with Connection(bootstrap, deadline) as connection:
        if not connection.speaks(StreamsGroupDescribeRequest):
            raise BrokerError(f"{connection.name} doesn't know streams groups: Kafka does from 4.1 on")
        while True:
            coordinator = _coordinator(connection, group_id, deadline)
            try:
                with Connection(coordinator, deadline) as to_coordinator:
                    described = _described(to_coordinator, group_id)
                    if described is not None:
                        return _read(to_coordinator, described)
            except BrokerError as error:
                if coordinator == bootstrap:
                    raise
                raise BrokerError(f"{error} ({connection.name} says that it coordinates {group_id})") from None
            _pause(deadline, connection, "for the group's coordinator to load")


def _coordinator(connection: Connection, group_id: str, deadline: float) -> Address:
    """Who coordinates the group; waits for somebody who does."""
    while True:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group_id,))
        found = next(iter(connection.ask(request, FindCoordinatorResponse).coordinators), None)
        if found is None:
            raise BrokerError(f"{connection.name} says nothing about the coordinator of {group_id}")
        if not found.error_code:
            return found.host, found.port
        if found.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            reason = kafka_error(found.error_code, found.error_message)
            raise BrokerError(f"{connection.name} doesn't say who coordinates {group_id}: {reason}")
        _pause(deadline, connection, "for a coordinator of the group")


def _pause(deadline: float, connection: Connection, waiting: str) -> None:
    if time.monotonic() + _PAUSE > deadline:
        raise BrokerError(f"{connection.name}: out of time waiting {waiting}; --timeout gives it more")
    time.sleep(_PAUSE)


def _described(connection: Connection, group_id: str) -> Described | None:
    """The group's description; None if the coordinator can't give one yet, or isn't it any more."""
    request = StreamsGroupDescribeRequest(group_ids=(group_id,))
    group = next(iter(connection.ask(request, StreamsGroupDescribeResponse).groups), None)
    if group is None:
        raise BrokerError(f"{connection.name} says nothing about {group_id}")
    match group.error_code:
        case ErrorCode.NONE:
            return group
        case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:
            return None
        case ErrorCode.GROUP_ID_NOT_FOUND:
            what = f"there is no streams group {group_id} at {connection.name}"
            raise BrokerError(f"{what} ({group.error_message})" if group.error_message else what)
    reason = kafka_error(group.error_code, group.error_message)
    raise BrokerError(f"{connection.name} doesn't describe {group_id}: {reason}")


def _read(connection: Connection, described: Described) -> tuple[Group, list[str]]:
    subtopologies = _subtopologies(connection, described)
    configs, notes = _configs(connection, described.group_id)
    there = {
        TaskId(subtopology.id, number) for subtopology in subtopologies for number in range(subtopology.partitions)
    }
    if sum(subtopology.partitions for subtopology in subtopologies) and not described.members:
        notes.append(f"the group is {described.group_state}: nobody is in it")
    lags, ends = _offsets(described, there)
    rack_tags = configs.get("streams.rack.aware.assignment.tags") or ""
    group = Group(
        subtopologies=subtopologies,
        members=tuple(_member(member, there) for member in described.members),
        standbys=_whole(configs, "streams.num.standby.replicas", 0),
        rack_tags=tuple(tag.strip() for tag in rack_tags.split(",") if tag.strip()),
        lags=lags,
        ends=ends,
        acceptable_lag=_whole(configs, "streams.acceptable.recovery.lag", 10_000),
    )
    try:
        check(group)
    except ValueError as error:
        raise BrokerError(f"{connection.name} describes {described.group_id} as it can't be: {error}") from None
    return group, notes


def _member(member: Described.Member, there: set[TaskId]) -> Member:
    has = member.assignment
    return Member(
        id=member.member_id,
        process=member.process_id,
        tags={tag.key: tag.value for tag in member.client_tags},
        active=frozenset(_tasks(has.active_tasks) & there),
        standby=frozenset((_tasks(has.standby_tasks) | _tasks(has.warmup_tasks)) & there),
    )


def _tasks(tasks: Iterable[TaskIds]) -> set[TaskId]:
    return {TaskId(of.subtopology_id, partition) for of in tasks for partition in of.partitions}


def _offsets(described: Described, there: set[TaskId]) -> tuple[dict[tuple[str, TaskId], int], dict[TaskId, int]]:
    """Records that each process's copies lag behind, and the ends of changelogs, as far as members reported them."""
    ends: dict[TaskId, int] = {}
    for member in described.members:
        for task, end in _reported(member.task_end_offsets, there):
            ends[task] = max(end, ends.get(task, 0))
    lags: dict[tuple[str, TaskId], int] = {}
    for member in described.members:
        for task, offset in _reported(member.task_offsets, there):
            if task in ends:
                copy = member.process_id, task
                lags[copy] = min(max(0, ends[task] - offset), lags.get(copy, ends[task]))
    return lags, ends


def _reported(offsets: Iterable[TaskOffset], there: set[TaskId]) -> Iterable[tuple[TaskId, int]]:
    """What was reported of tasks that there are; negative offsets stand for something else."""
    tasks = ((TaskId(of.subtopology_id, of.partition), of.offset) for of in offsets)
    return ((task, offset) for task, offset in tasks if task in there and offset >= 0)


def _subtopologies(connection: Connection, described: Described) -> tuple[SubtopologyTasks, ...]:
    """Each part of the topology, with as many tasks as its largest source topic has partitions."""
    parts = described.topology.subtopologies if described.topology is not None else None
    if parts is None:
        state = described.group_state
        raise BrokerError(f"{described.group_id} has no topology that can run ({state}): are its source topics there?")
    sources = {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in parts
    }
    partitions = _partitions(connection, {topic for topics in sources.values() for topic in topics})
    if missing := sorted({topic for topics in sources.values() for topic in topics} - partitions.keys()):
        raise BrokerError(f"{described.group_id} can't run: there is no topic {', '.join(missing)}")
    return tuple(
        SubtopologyTasks(
            part.subtopology_id,
            max((partitions[topic] for topic in sources[part.subtopology_id]), default=0),
            len(part.state_changelog_topics),
        )
        for part in parts
    )


def _partitions(connection: Connection, topics: set[str]) -> dict[str, int]:
    """Partition counts of those topics that exist."""
    request = MetadataRequest(
        topics=[MetadataRequest.Topic(name=topic) for topic in sorted(topics)], allow_auto_topic_creation=False
    )
    found = {}
    for topic in connection.ask(request, MetadataResponse).topics:
        if topic.name is not None and not topic.error_code:
            found[topic.name] = len(topic.partitions)
        elif topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            reason = kafka_error(topic.error_code)
            raise BrokerError(f"{connection.name} doesn't say how many partitions topic {topic.name} has: {reason}")
    return found


def _configs(connection: Connection, group_id: str) -> tuple[Mapping[str, str | None], list[str]]:
    """The group's configuration, or a note that says why it isn't known."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.Resource(resource_type=_GROUP, resource_name=group_id, configuration_keys=None)
        ]
    )
    configs: dict[str, str | None] = {}
    for result in connection.ask(request, DescribeConfigsResponse).results:
        if result.error_code:
            reason = kafka_error(result.error_code, result.error_message)
            return {}, [f"the group's configuration can't be read ({reason}): taken for Kafka's defaults"]
        configs.update({config.name: config.value for config in result.configs})
    return configs, []


def _whole(configs: Mapping[str, str | None], key: str, otherwise: int) -> int:
    value = configs.get(key) or ""
    return int(value) if value.isascii() and value.isdigit() else otherwise
