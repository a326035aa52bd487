"""A streams group out of a running cluster: Kafka 4.1 or later, or Kohort."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.client.administration.configs import ConfigResource, ResourceType
from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.client.errors import ClientError
from kohort.coordinator.placement import check
from kohort.coordinator.placement.model import Group, Member, SubtopologyTasks
from kohort.protocol.errors import KafkaError
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId

if TYPE_CHECKING:
    from kohort.client.admin import Admin


class NotPlaceableError(ClientError):
    """A group that has no tasks to place: it is of another type, or has no topology that can run."""


async def read_placed_group(admin: Admin, group_id: str) -> tuple[Group, list[str]]:
    """Returns the group as it is now, and what couldn't be found out about it, in sentences.

    Members have their current assignment; a task that is moving between two members is no member's.

    Raises:
        NotPlaceableError: the group can't be placed; says why.
        ClientError, KafkaError, PartialFailureError: the cluster doesn't answer, or refuses.
    """
    described = (await admin.groups.describe(group_id))[group_id]
    if described.type is not GroupType.STREAMS:
        raise NotPlaceableError(f"{group_id} is a {described.type} group; only streams groups have tasks to place")
    subtopologies = await _subtopologies(admin, described)
    configs, notes = await _configs(admin, group_id)
    tasks = {TaskId(each.id, partition) for each in subtopologies for partition in range(each.partitions)}
    if tasks and not described.members:
        notes.append(f"the group is {described.state}: nobody is in it")
    members = tuple(_member(member, tasks) for member in described.members)
    offsets = _offsets(described, tasks)
    has = {member.id: member.active | member.standby for member in members}
    rack_tags = configs.get("streams.rack.aware.assignment.tags") or ""
    group = Group(
        subtopologies=subtopologies,
        members=members,
        standbys=_whole(configs, "streams.num.standby.replicas", 0),
        rack_tags=tuple(tag.strip() for tag in rack_tags.split(",") if tag.strip()),
        lags=offsets.lags(lambda member, task: task in has[member]),
        ends=offsets.ends,
        acceptable_lag=_whole(configs, "streams.acceptable.recovery.lag", 10_000),
    )
    try:
        check(group)
    except ValueError as error:
        raise NotPlaceableError(f"{group_id} is described as it can't be: {error}") from None
    return group, notes


async def _subtopologies(admin: Admin, described: GroupDescription) -> tuple[SubtopologyTasks, ...]:
    """Each subtopology, with as many tasks as its largest source topic has partitions."""
    if described.topology is None:
        raise NotPlaceableError(
            f"{described.group_id} has no topology that can run ({described.state}): are its source topics there?"
        )
    topics = await admin.topics.describe(*described.topology.readers)
    return tuple(
        SubtopologyTasks(
            name, max((len(topics[topic].partitions) for topic in each.inputs), default=0), len(each.changelogs)
        )
        for name, each in described.topology.subtopologies.items()
    )


async def _configs(admin: Admin, group_id: str) -> tuple[Mapping[str, str | None], list[str]]:
    """The group's configuration, or a note that says why it isn't known."""
    resource = ConfigResource(ResourceType.GROUP, group_id)
    try:
        entries = (await admin.configs.describe(resource))[resource]
    except KafkaError as error:
        return {}, [f"the group's configuration can't be read ({error}): taken for Kafka's defaults"]
    return {name: entry.value for name, entry in entries.items()}, []


def _member(member: GroupMember, tasks: set[TaskId]) -> Member:
    streams = member.streams
    assert streams is not None, "members of streams groups have tasks"

    active = frozenset(task for task, role in streams.tasks.items() if role is Role.ACTIVE)
    return Member(
        id=member.member_id,
        process=streams.process_id or member.member_id,
        tags=streams.tags,
        active=active & tasks,
        standby=frozenset(streams.tasks.keys() - active) & tasks,
    )


def _offsets(described: GroupDescription, tasks: set[TaskId]) -> TaskOffsets:
    """Returns the task offsets that members reported, without tasks that don't exist."""
    offsets = TaskOffsets()
    for member in described.members:
        if (streams := member.streams) is not None:
            copies, ends = (
                {task: offset for task, offset in reported.items() if task in tasks}
                for reported in (streams.task_offsets, streams.task_end_offsets)
            )
            offsets = offsets.report(member.member_id, streams.process_id or member.member_id, copies, ends)
    return offsets


def _whole(configs: Mapping[str, str | None], key: str, otherwise: int) -> int:
    value = configs.get(key) or ""
    return int(value) if value.isascii() and value.isdigit() else otherwise
