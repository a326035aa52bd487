"""Members of a streams group that take tasks on, and give them up, as an application's instances do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from kohort.client.admin import Admin
from kohort.client.administration.configs import ConfigResource, ResourceType
from kohort.client.config import Servers
from kohort.client.streams_member import (
    InternalTopic,
    Lost,
    Revoked,
    Role,
    RolesChanged,
    StreamsMember,
    Subtopology,
    TaskId,
    Topology,
)
from tests.waiting import until

__all__ = ["instances", "set_group", "topology"]


def topology(group_id: str, topic: str) -> Topology:
    """One that keeps state for each partition of a topic."""
    changelogs = [InternalTopic(f"{group_id}-store-changelog")]
    return Topology({"0": Subtopology(source_topics=[topic], changelogs=changelogs)})


async def set_group(servers: Servers, group_id: str, **settings: object) -> None:
    """Settings of one group: `num_standby_replicas=1` is streams.num.standby.replicas."""
    given = {f"streams.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    async with Admin(servers) as admin:
        await admin.configs.alter(ConfigResource(ResourceType.GROUP, group_id), set=given)


@asynccontextmanager
async def instances(
    servers: Servers,
    group_id: str,
    topic: str,
    each: Sequence[dict[str, Any]],
    *,
    partitions: int,
    standbys: int = 0,
    reports: tuple[Mapping[TaskId, int], Mapping[TaskId, int]] = ({}, {}),
) -> AsyncIterator[list[StreamsMember]]:
    """An instance for each dict of a member's parameters, when they have all tasks, and so many standbys of each.

    Before they join they have reported these offsets and ends.
    """
    async with AsyncExitStack() as stack:
        members, living = [], []
        for parameters in each:
            member = StreamsMember(servers, group_id, topology(group_id, topic), **parameters)
            member.report_offsets(*reports)
            members.append(await stack.enter_async_context(member))
            living.append(asyncio.create_task(_live(member)))
        try:
            roles = {Role.ACTIVE: partitions, Role.STANDBY: partitions * standbys}

            def placed() -> bool:
                has = [role for member in members for role in member.tasks.values()]
                least = min(sum(role is Role.ACTIVE for role in member.tasks.values()) for member in members)
                return least >= partitions // len(members) and all(
                    has.count(role) == wanted for role, wanted in roles.items()
                )

            await until(placed, "all tasks are placed")
            yield members
        finally:
            for task in living:
                task.cancel()
            await asyncio.gather(*living, return_exceptions=True)


async def _live(member: StreamsMember) -> None:
    async for event in member:
        match event:
            case Revoked(tasks) | Lost(tasks):
                member.closed(*tasks)
            case RolesChanged(tasks):
                member.closed(*(task for task, (before, _) in tasks.items() if before is Role.ACTIVE))
