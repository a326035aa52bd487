"""Applications of Kohort's streams members: what they run and when, and the rule that all of them have to keep."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from kohort.client.streams_member import (
    Assigned,
    Event,
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

from .streams_apps import Instance

CLOSE_S = 0.02  # that closing a task takes
END = 1_000  # of every changelog, for all that is reported


def word_count(application: str, source: str) -> Topology:
    """The topology of Topologies.java's "word-count", to the last setting: then members of both make one group."""
    words = InternalTopic(
        name=f"{application}-words-repartition",
        replication_factor=1,
        configs={
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            "retention.ms": "-1",
            "segment.bytes": "52428800",
        },
    )
    counts = InternalTopic(
        name=f"{application}-counts-changelog",
        replication_factor=1,
        configs={"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
    )
    return Topology(
        {
            "0": Subtopology(source_topics=[source], repartition_sinks=[words.name]),
            "1": Subtopology(repartition_sources=[words], changelogs=[counts]),
        }
    )


class Application:
    """Does nothing with its tasks but to have them; all copies of state are there at once."""

    def __init__(self, member: StreamsMember) -> None:
        self.member = member
        self.events: list[Event] = []
        self.ran: dict[TaskId, list[list[int]]] = defaultdict(list)  # from and to, ns
        self.lost: list[TaskId] = []
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        async for event in self.member:
            self.events.append(event)
            match event:
                case Assigned(tasks):
                    self.begin(task for task, role in tasks.items() if role is Role.ACTIVE)
                case RolesChanged(roles):
                    self.begin(task for task, (_, after) in roles.items() if after is Role.ACTIVE)
                    await self.close(task for task, (before, _) in roles.items() if before is Role.ACTIVE)
                case Revoked(tasks):
                    await self.close(tasks)
                case Lost(tasks):
                    self.lost.extend(tasks)
                    await self.close(tasks)
            copies = [task for task, role in self.member.tasks.items() if role is not Role.ACTIVE]
            self.member.report_offsets(dict.fromkeys(copies, END), dict.fromkeys(copies, END))

    def begin(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            self.ran[task].append([time.monotonic_ns()])

    async def close(self, tasks: Iterable[TaskId]) -> None:
        for task in sorted(tasks):
            await asyncio.sleep(CLOSE_S)
            if self.ran[task] and len(self.ran[task][-1]) == 1:
                self.ran[task][-1].append(time.monotonic_ns())
            self.member.closed(task)

    def has(self, role: Role = Role.ACTIVE) -> set[str]:
        assert not self.task.done() or self.member.ended, self.task
        return {str(task) for task, held in self.member.tasks.items() if held is role}

    async def kill(self) -> None:
        """Be gone without a word."""
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.member._cluster.close()


@asynccontextmanager
async def joined(servers: str, group_id: str, topology: Topology, **settings: Any) -> AsyncIterator[Application]:
    """A member, until the block ends; then it gives up its tasks and leaves."""
    async with StreamsMember(servers, group_id, topology, **settings) as member:
        application = Application(member)
        yield application
        if not application.task.done():
            member.leave()
            async with asyncio.timeout(20):
                await application.task


def shared(applications: Sequence[Application], tasks: Collection[str]) -> bool:
    """Whether all tasks run, each once, and the members have their fair shares."""
    has = [application.has() for application in applications]
    even = max(map(len, has)) - min(map(len, has)) <= 1
    return even and sorted(task for of in has for task in of) == sorted(tasks)


def assert_one_owner(applications: Iterable[Application]) -> None:
    """No task ran with two of our members at a time; one that was killed ran until now, and doesn't count."""
    ran: dict[TaskId, list[list[int]]] = defaultdict(list)
    for application in applications:
        for task, times in application.ran.items():
            ran[task] += [each for each in times if len(each) == 2]
    assert ran
    for task, times in ran.items():
        for (_, until_then), (since, _) in pairwise(sorted(times)):
            assert until_then <= since, f"task {task} had two owners"


def assert_not_taken_early(instance: Instance, application: Application) -> None:
    """No task ran with Kafka Streams before our member had closed it."""
    for task, times in application.ran.items():
        for began, ended in times:
            for told in instance.told("tasks"):
                # What an instance tells may be a moment old: only what it took on after our member did counts.
                late = began + 1_000_000_000
                assert not late < told["at"] < ended or str(task) not in told["active"], f"{task} had two owners"
