"""Streams members in classic groups, over sockets, with a broker in this process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.client import streams_group_leader
from kohort.client.admin import Admin
from kohort.client.errors import ConfigError
from kohort.client.streams_group_leader import StreamsGroupLeader
from kohort.client.streams_member import (
    ClassicSettings,
    Endpoint,
    InternalTopic,
    Lost,
    Revoked,
    Role,
    RolesChanged,
    ShutdownRequested,
    State,
    StatusCode,
    StreamsMember,
    Subtopology,
    TaskId,
    Topology,
)
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.testing.broker import Broker
from tests.client.streams.test_streams_member import TOPOLOGY, Application, broker, joined
from tests.waiting import run, until

CLASSIC_ONLY = {"group.coordinator.rebalance.protocols": "classic,consumer"}
QUICK = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
TASKS = [TaskId("0", partition) for partition in range(4)]


def classic(**settings: Any) -> dict[str, Any]:
    return {
        "group_protocol": "classic",
        "classic": ClassicSettings(**{"heartbeat_interval_ms": 30, "session_timeout_ms": 10_000} | settings),
    }


def test_tasks_are_shared_and_go_back() -> None:
    async def test() -> None:
        quick = classic(max_warmup_replicas=0)
        async with broker(**QUICK) as server, joined(server.bootstrap_servers, **quick) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            async with joined(server.bootstrap_servers, **quick) as b:
                await until(lambda: len(a.has(Role.ACTIVE)) == len(b.has(Role.ACTIVE)) == 2)
                assert sorted(a.has(Role.ACTIVE) + b.has(Role.ACTIVE)) == [0, 1, 2, 3]
                await until(lambda: a.member.state is b.member.state is State.STABLE)
                assert a.member.group_metadata().generation == b.member.group_metadata().generation > 0
                b.member.leave()
                await b.task
                assert b.member.state is State.LEFT
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            assert not a.seen(Lost)

    run(test())


def test_the_leader_creates_internal_topics() -> None:
    async def test() -> None:
        topology = Topology(
            {
                "0": Subtopology(source_topics=["in"], repartition_sinks=["app-r"]),
                "1": Subtopology(
                    repartition_sources=[InternalTopic(name="app-r", partitions=3)],
                    changelogs=[InternalTopic(name="app-c", configs={"cleanup.policy": "compact"})],
                ),
            }
        )
        async with (
            broker(**QUICK) as server,
            StreamsMember(server.bootstrap_servers, "app", topology, **classic()) as member,
            Admin(server.bootstrap_servers) as admin,
        ):
            application = Application(member)
            await until(lambda: len(application.member.tasks) == 7)
            topics = await admin.topics.describe("app-r", "app-c")
            assert {name: len(topic.partitions) for name, topic in topics.items()} == {"app-r": 3, "app-c": 3}
            await member.close()
            await application.task

    run(test())


def test_topics_that_cannot_be_created_are_a_status() -> None:
    async def test() -> None:
        changelog = InternalTopic(name="app-c", replication_factor=3)  # there is one broker
        topology = Topology({"0": Subtopology(source_topics=["in"], changelogs=[changelog])})
        async with (
            broker(**QUICK) as server,
            StreamsMember(server.bootstrap_servers, "app", topology, **classic(session_timeout_ms=1_500)) as member,
        ):
            application = Application(member)
            await until(lambda: [each.code for each in member.statuses] == [StatusCode.MISSING_INTERNAL_TOPICS])
            await member.close()
            await application.task

    run(test())


def test_sources_that_come_late() -> None:
    async def test() -> None:
        async with (
            Broker(QUICK) as server,
            Admin(server.bootstrap_servers) as admin,
            joined(server.bootstrap_servers, **classic()) as a,
        ):
            await until(lambda: [status.code for status in a.member.statuses] == [StatusCode.MISSING_SOURCE_TOPICS])
            await admin.topics.create("in", partitions=2)
            await until(lambda: a.has(Role.ACTIVE) == [0, 1])
            await until(lambda: a.member.statuses == ())

    run(test())


def test_a_static_leader_that_comes_back_hears_of_sources_that_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_group_leader, "_LOOK_MS", 50)
    static = classic() | {"instance_id": "i", "process_id": "p"}

    async def test() -> None:
        async with Broker(QUICK) as server, Admin(server.bootstrap_servers) as admin:
            async with joined(server.bootstrap_servers, **static) as a:
                await until(lambda: [each.code for each in a.member.statuses] == [StatusCode.MISSING_SOURCE_TOPICS])
            await admin.topics.create("in", partitions=2)
            async with joined(server.bootstrap_servers, **static) as a:
                await until(lambda: a.has(Role.ACTIVE) == [0, 1])

    run(test())


def test_a_static_leader_that_comes_back_places_the_tasks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can't know whether its topics are still those that its assignment was made for."""
    monkeypatch.setattr(streams_group_leader, "_LOOK_MS", 20)
    static = classic() | {"instance_id": "i", "process_id": "p"}
    seen, looks = streams_group_leader.topics_seen, []

    def counted(*args: Any) -> Any:
        looks.append(args)
        return seen(*args)

    monkeypatch.setattr(streams_group_leader, "topics_seen", counted)

    async def test() -> None:
        async with broker(**QUICK) as server:
            async with joined(server.bootstrap_servers, **static) as a:
                await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
                generation = a.member.group_metadata().generation
            async with joined(server.bootstrap_servers, **static) as a:
                await until(lambda: a.member.group_metadata().generation == generation + 1)
                await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
                looks.clear()
                await until(lambda: len(looks) == 3)
                assert a.member.group_metadata().generation == generation + 1
                assert not a.seen(Revoked)

    run(test())


def test_a_warm_up_becomes_the_running_task_when_its_state_is_there() -> None:
    async def test() -> None:
        async with broker(**QUICK) as server, joined(server.bootstrap_servers, **classic()) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            ends = dict.fromkeys(TASKS, 50_000)
            async with joined(server.bootstrap_servers, **classic()) as b:
                await until(lambda: len(b.has(Role.WARMUP)) == 2)
                first, second = (TASKS[n] for n in b.has(Role.WARMUP))
                assert a.has(Role.ACTIVE) == [0, 1, 2, 3], "it runs until the other one can"
                assert b.member.acceptable_recovery_lag == 10_000
                b.member.report_offsets({first: 50_000, second: 0}, ends)
                await until(lambda: b.has(Role.ACTIVE) == [first.partition])
                assert b.seen(RolesChanged) == [RolesChanged({first: (Role.WARMUP, Role.ACTIVE)})]
                b.member.report_offsets({second: 50_000}, ends)
                await until(lambda: b.has(Role.ACTIVE) == [first.partition, second.partition])

    run(test())


def test_standbys_and_endpoints() -> None:
    async def test() -> None:
        quick = classic(num_standby_replicas=1, max_warmup_replicas=0)
        async with (
            broker(**QUICK) as server,
            joined(server.bootstrap_servers, user_endpoint=("a", 1), **quick) as a,
            joined(server.bootstrap_servers, user_endpoint=("b", 2), **quick) as b,
        ):
            await until(lambda: [len(one.has(role)) for one in (a, b) for role in Role] == [2, 2, 0, 2, 2, 0])
            here, there = (
                frozenset(TopicPartition("in", n) for n in partitions)
                for partitions in (a.has(Role.ACTIVE), b.has(Role.ACTIVE))
            )
            wanted = {Endpoint("a", 1): (here, there), Endpoint("b", 2): (there, here)}
            await until(lambda: a.member.endpoints == b.member.endpoints == wanted)

    run(test())


def test_a_shutdown_ends_all() -> None:
    async def test() -> None:
        async with (
            broker(**QUICK) as server,
            joined(server.bootstrap_servers, **classic()) as a,
            joined(server.bootstrap_servers, **classic()) as b,
        ):
            await until(lambda: a.has(Role.ACTIVE) and b.member.state is State.STABLE)
            b.member.shutdown_application()
            for one in (a, b):
                await one.task
                assert one.member.state is State.LEFT
                assert len(one.seen(ShutdownRequested)) == 1

    run(test())


def test_a_shutdown_ends_all_though_who_asks_for_it_is_closed() -> None:
    async def test() -> None:
        slow = classic(heartbeat_interval_ms=300)
        async with (
            broker(**QUICK) as server,
            joined(server.bootstrap_servers, **slow) as a,
            joined(server.bootstrap_servers, **slow) as b,
            Admin(server.bootstrap_servers) as admin,
        ):
            await until(lambda: a.member.state is b.member.state is State.STABLE and bool(a.has(Role.ACTIVE)))
            b.member.shutdown_application()
            await b.member.close()
            await a.task
            assert len(a.seen(ShutdownRequested)) == 1
            assert (await admin.groups.describe("app"))["app"].members == ()

    run(test())


def test_offsets_are_committed_by_whom_the_task_belongs_to() -> None:
    async def test() -> None:
        async with broker(**QUICK) as server, joined(server.bootstrap_servers, **classic()) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            at = TopicPartition("in", 1)
            await a.member.commit({at: 7})
            assert await a.member.committed([at]) == {at: OffsetAndMetadata(7)}

    run(test())


def test_a_member_leaves_at_once_while_it_waits_for_others_to_join() -> None:
    async def test() -> None:
        slow = QUICK | {"group.initial.rebalance.delay.ms": 60_000}
        async with (
            broker(**slow) as server,
            joined(server.bootstrap_servers, **classic()) as a,
            Admin(server.bootstrap_servers) as admin,
        ):
            while [each.state for each in await admin.groups.list()] != ["PreparingRebalance"]:
                await asyncio.sleep(0.01)
            await a.member.close()
            assert a.member.state is State.LEFT
            assert (await admin.groups.describe("app"))["app"].members == ()

    run(test())


def test_a_member_leaves_at_once_while_it_places_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking topics up takes long when brokers don't answer."""
    placing = []

    async def place(leader: StreamsGroupLeader, now: Any) -> None:
        placing.append(leader)
        await asyncio.Event().wait()

    monkeypatch.setattr(StreamsGroupLeader, "place", place)

    async def test() -> None:
        async with (
            broker(**QUICK) as server,
            joined(server.bootstrap_servers, **classic()) as a,
            Admin(server.bootstrap_servers) as admin,
        ):
            await until(lambda: placing)
            await a.member.close()
            assert (await admin.groups.describe("app"))["app"].members == ()
            assert len(placing) == 1

    run(test())


def test_a_member_whose_placement_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def place(leader: StreamsGroupLeader, now: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(StreamsGroupLeader, "place", place)

    async def test() -> None:
        async with broker(**QUICK) as server, joined(server.bootstrap_servers, **classic()) as a:
            await a.task
            assert str(a.error) == "broken"

    run(test())


def test_an_error_ends_no_watch_over_topics(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(streams_group_leader, "_LOOK_MS", 20)
    seen, failures = streams_group_leader.topics_seen, [RuntimeError("broken")]

    def failing(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return seen(*args)

    monkeypatch.setattr(streams_group_leader, "topics_seen", failing)

    async def test() -> None:
        async with (
            Broker(QUICK) as server,
            Admin(server.bootstrap_servers) as admin,
            joined(server.bootstrap_servers, **classic()) as a,
        ):
            await until(lambda: not failures)
            await admin.topics.create("in", partitions=2)
            await until(lambda: a.has(Role.ACTIVE) == [0, 1])

    run(test())
    assert "topics can't be watched; trying again" in caplog.text


def test_who_describes_the_group_sees_processes_and_tasks() -> None:
    async def test() -> None:
        async with (
            broker(**QUICK) as server,
            joined(server.bootstrap_servers, process_id="p", client_tags={"zone": "a"}, **classic()) as a,
            Admin(server.bootstrap_servers) as admin,
        ):
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            group = (await admin.groups.describe("app"))["app"]
            (state,) = [member.streams for member in group.members]
            assert state is not None
            assert (state.process_id, state.tags) == ("p", {"zone": "a"})
            assert state.tasks == dict.fromkeys(TASKS, Role.ACTIVE)

    run(test())


@pytest.mark.parametrize(
    ("settings", "before", "wanted"),
    [
        ({}, None, "streams"),
        (CLASSIC_ONLY, None, "classic"),
        ({}, "classic", "classic"),
        ({}, "streams", "streams"),
    ],
)
def test_auto(settings: dict[str, Any], before: str | None, wanted: str) -> None:
    async def test() -> None:
        async with broker(**QUICK | settings) as server, Admin(server.bootstrap_servers) as admin:
            others = [] if before is None else [classic(session_timeout_ms=1_000) | {"group_protocol": before}]
            for other in others:
                await until_joined(server, other)
            async with joined(server.bootstrap_servers, **classic() | {"group_protocol": "auto"}) as a:
                await until(lambda: a.member.state is State.STABLE and bool(a.member.tasks))
                (group,) = await admin.groups.list()
                assert group.type == wanted

    async def until_joined(server: Broker, other: dict[str, Any]) -> None:
        """A member that dies without a word: the group has it until its session is over."""
        member = StreamsMember(server.bootstrap_servers, "app", TOPOLOGY, instance_id="i", **other)
        await member.start()
        await until(lambda: member.group_metadata().generation > 0 and member.state is not State.JOINING)
        await member.close()

    run(test())


def test_what_it_is_given_is_checked() -> None:
    async def test() -> None:
        with pytest.raises(ConfigError, match="group_protocol"):
            StreamsMember("localhost:1", "app", TOPOLOGY, group_protocol="consumer")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="heartbeat_interval_ms"):
            ClassicSettings(heartbeat_interval_ms=10, session_timeout_ms=10)

    run(test())
