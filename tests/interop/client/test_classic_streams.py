"""Streams applications in classic groups, on brokers with streams groups and without."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.client.admin import Admin
from kohort.client.errors import UnsupportedError
from kohort.client.streams_member import (
    ClassicSettings,
    InternalTopic,
    Lost,
    Role,
    State,
    StreamsMember,
    Subtopology,
    TaskId,
    Topology,
)
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError
from tests.client.streams.test_streams_member import Application
from tests.marks import long
from tests.spark.runtime.faults import Instances, kill_at
from tests.tools import MAVEN
from tests.waiting import run, until

from ..kfake import Kfake
from ..newest_kafka import NewestKafka
from ..older_kafka import OlderKafka
from ..servers import QUICK, QUICK_KRAFT, KohortServer, Server

TASKS = [TaskId("0", n) for n in range(3)] + [TaskId("1", n) for n in range(3)]
STREAMS_GROUPS = {
    "kohort": "streams",
    "kafka-4.4": "streams",
    "kafka-3.9": "classic",
    "kafka-3.3": "classic",
    "kfake": "classic",
}
"""What "auto" takes."""

OTHERS = ("kafka-3.9", "kafka-3.3", "kafka-4.4", "kfake")


@pytest.fixture(
    scope="module",
    params=["kohort", *long(*OTHERS)],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp(request.param) / "node"
    node: Server
    if request.param == "kohort":
        node = KohortServer(directory)
    elif request.param == "kfake":
        node = Kfake(directory)
    else:
        MAVEN.require()
        version = request.param.partition("-")[2]
        node = NewestKafka(directory, QUICK | QUICK_KRAFT) if version == "4.4" else OlderKafka(directory, version)
    node.name = request.param  # type: ignore[attr-defined]
    try:
        node.start()
        yield node
    finally:
        if node.process is not None:
            node.kill()


def word_count(group: str, source: str) -> Topology:
    return Topology(
        {
            "0": Subtopology(source_topics=[source], repartition_sinks=[f"{group}-r-repartition"]),
            "1": Subtopology(
                repartition_sources=[InternalTopic(name=f"{group}-r-repartition")],
                changelogs=[InternalTopic(name=f"{group}-c-changelog", configs={"cleanup.policy": "compact"})],
            ),
        }
    )


async def created(server: Server) -> tuple[str, Topology]:
    group = f"app-{uuid.uuid4().hex[:8]}"
    async with Admin(server.bootstrap) as admin:
        await admin.topics.create(f"{group}-in", partitions=3)
    return group, word_count(group, f"{group}-in")


def member(server: Server, group: str, topology: Topology, **more: Any) -> StreamsMember:
    quick = ClassicSettings(heartbeat_interval_ms=100, session_timeout_ms=6_000, max_warmup_replicas=0)
    return StreamsMember(server.bootstrap, group, topology, **{"group_protocol": "classic", "classic": quick} | more)


def shared(*applications: Application) -> bool:
    has = [task for one in applications for task, role in one.member.tasks.items() if role is Role.ACTIVE]
    return sorted(has) == TASKS and all(one.member.state is State.STABLE for one in applications)


@pytest.mark.parametrize("server", ["kohort", OTHERS[0], *long(*OTHERS[1:])], indirect=True, scope="module")
def test_two_share_tasks_and_one_dies(server: Server) -> None:
    async def test() -> None:
        group, topology = await created(server)
        async with member(server, group, topology) as a:
            first = Application(a)
            await until(lambda: shared(first), "the leader has made the topics")
            b = member(server, group, topology)
            await b.start()
            second = Application(b)
            await until(lambda: shared(first, second) and len(a.tasks) == len(b.tasks) == 3)
            at = TopicPartition(f"{group}-in", next(task.partition for task in a.tasks if task.subtopology == "0"))
            await a.commit({at: 3})
            assert await a.committed([at]) == {at: OffsetAndMetadata(3)}
            b._membership.abandon(0)  # it goes without a word
            await until(lambda: shared(first), "its session is over")
            assert not first.seen(Lost)
            await second.task
            await b.close()
            await a.close()
            await first.task

    run(test())


def test_a_static_member_comes_back_to_its_tasks(server: Server) -> None:
    async def test() -> None:
        group, topology = await created(server)
        quick = ClassicSettings(heartbeat_interval_ms=100, session_timeout_ms=20_000, max_warmup_replicas=0)
        static = {"instance_id": "b", "process_id": "b", "classic": quick}
        async with member(server, group, topology, classic=quick) as a:
            first = Application(a)
            async with member(server, group, topology, **static) as b:
                second = Application(b)
                await until(lambda: shared(first, second) and len(a.tasks) == len(b.tasks) == 3)
                had = b.tasks
                b.leave()
                await second.task
            async with member(server, group, topology, **static) as again:
                third = Application(again)
                await until(lambda: shared(first, third))
                assert again.tasks == had
                await again.close(for_good=True)
                await third.task
            await a.close()
            await first.task

    run(test())


def test_auto_takes_streams_groups_where_they_are_served(server: Server) -> None:
    async def test() -> None:
        group, topology = await created(server)
        async with member(server, group, topology, group_protocol="auto") as a, Admin(server.bootstrap) as admin:
            application = Application(a)
            await until(lambda: shared(application))
            kind = (await admin.groups.types(group))[group]
            assert kind == STREAMS_GROUPS[server.name]  # type: ignore[attr-defined]
            await a.close()
            await application.task

    run(test())


@pytest.mark.parametrize(("theirs", "other"), [("streams", "classic"), ("classic", "streams")])
def test_a_group_has_one_protocol_and_takes_the_other_when_it_is_empty(server: Server, theirs: str, other: str) -> None:
    async def test() -> None:
        group, topology = await created(server)
        if STREAMS_GROUPS[server.name] == "classic":  # type: ignore[attr-defined]
            async with member(server, group, topology, group_protocol="streams") as alone:
                with pytest.raises(UnsupportedError, match="the brokers have no streams groups"):
                    await alone.next_event()
            return
        async with member(server, group, topology, group_protocol=theirs) as a:
            first = Application(a)
            await until(lambda: shared(first))
            async with member(server, group, topology, group_protocol=other) as b:
                with pytest.raises(KafkaError, match="members of another protocol"):
                    await b.next_event()
            async with member(server, group, topology, group_protocol="auto") as c:
                second = Application(c)
                await until(lambda: shared(first, second) and len(c.tasks) == 3)
                at = TopicPartition(f"{group}-in", 0)
                await next(one for one in (a, c) if TASKS[0] in one.tasks).commit({at: 5})
                await c.close()
                await second.task
            await a.close()
            await first.task
        async with member(server, group, topology, group_protocol=other) as d:
            third = Application(d)
            await until(lambda: shared(third))
            assert await d.committed([at]) == {at: OffsetAndMetadata(5)}
            await d.close()
            await third.task

    run(test())


@pytest.mark.parametrize("step", ["offsets", "committed"])
def test_an_instance_is_killed_and_each_record_counts_once(server: Server, tmp_path: Path, step: str) -> None:
    instances = Instances(server.bootstrap, f"app-{uuid.uuid4().hex[:8]}", tmp_path)
    instances.options |= {"group_protocol": "classic", "session_timeout_ms": 6_000}
    asyncio.run(kill_at(instances, step, 3))
