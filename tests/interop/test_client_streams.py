"""Streams groups of Kohort's members, alone and beside Kafka Streams, with a Kohort server and with Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kohort.client.heartbeat_errors import Reaction
from kohort.client.producer import Producer
from kohort.client.streams_member import Endpoint, Role, State, StreamsMember, TaskId, Topology
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from tests.tools import MAVEN

from ..waiting import eventually, run, until
from .client_streams import Application, assert_not_taken_early, assert_one_owner, joined, shared, word_count
from .conftest import watch
from .servers import KohortServer, Server
from .streams_apps import QUICK_STREAMS, Fleet, Process, configure, tasks
from .streams_words import Lines, Output
from .topics import create_topic

NewName = Callable[[], str]
ALL = tasks(_0=3, _1=3)


@pytest.fixture(scope="module")
def kohort_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = KohortServer(tmp_path_factory.mktemp("server"), QUICK_STREAMS)
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["kohort", "kafka"])
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue("kohort_server" if request.param == "kohort" else "newest_kafka")
    watch(request.node, server)
    return server


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    MAVEN.require()
    process = Process(tmp_path_factory.mktemp("jvm") / "applications")
    yield process
    process.kill()


@pytest.fixture
def fleet(server: Server, jvm: Process, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(server, tmp_path, lambda: jvm)
    yield fleet
    fleet.end()


@pytest.fixture
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


async def commit_all(applications: list[Application], servers: str, topology: Topology) -> None:
    """Each member commits an offset for each task that it runs, in half of the cases with a transaction."""
    wanted: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for number, application in enumerate(applications):
        member = application.member
        inputs = [at for task in map(TaskId.parse, application.has()) for at in topology.inputs(task)]
        offsets = {at: OffsetAndMetadata(number + 1) for at in inputs}
        wanted |= offsets
        if number % 2:
            await member.commit(offsets)
            continue
        async with Producer(servers, transactional_id=member.member_id) as producer, producer.transaction():
            await producer.send_offsets_to_transaction(offsets, member.group_metadata())
    assert await applications[0].member.committed(list(wanted)) == wanted


def test_members_come_and_go(server: Server, admin: AdminClient, new_name: NewName) -> None:
    group = new_name()
    topology = word_count(group, create_topic(admin, f"{group}-in", 3))
    configure(admin, group, streams__session__timeout__ms="30000")  # nobody has to be missed

    async def test() -> None:
        async with joined(server.bootstrap, group, topology) as a:
            await until(lambda: shared([a], ALL), "the first has everything")
            async with joined(server.bootstrap, group, topology) as b:
                await until(lambda: shared([a, b], ALL), "two share the tasks")
                await commit_all([a, b], server.bootstrap, topology)
                async with joined(server.bootstrap, group, topology) as c:
                    await until(lambda: shared([a, b, c], ALL), "three share the tasks")
                    epochs = [one.member.group_metadata().generation for one in (a, b, c)]
                    assert min(epochs) > 0
                await until(lambda: shared([a, b], ALL), "two share the tasks again")
            await until(lambda: shared([a], ALL), "the first has everything again")
        assert_one_owner([a, b, c])
        assert not a.lost + b.lost + c.lost
        assert {one.member.state for one in (a, b, c)} == {State.LEFT}

    run(test())


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_answers_with_tasks_get_lost(server: Server, admin: AdminClient, new_name: NewName, static: bool) -> None:
    """No task is nobody's afterwards, be the lost answer that to joining or a later one."""
    group = new_name()
    topology = word_count(group, create_topic(admin, f"{group}-in", 3))
    configure(admin, group, streams__session__timeout__ms="30000")  # nobody has to be missed

    async def test() -> None:
        names = {"instance_id": "b"} if static else {}
        async with (
            joined(server.bootstrap, group, topology) as a,
            joined(server.bootstrap, group, topology, **names) as b,
        ):
            membership, lost = b.member._membership, list[int]()
            take = membership.on_response

            def on_response(response: StreamsGroupHeartbeatResponse, now: int) -> Reaction:
                if (not lost) if response.active_tasks == [] else (response.active_tasks and len(lost) < 2):
                    lost.append(response.member_epoch)
                    membership.on_failure(now)
                    return Reaction.FIND_COORDINATOR
                return take(response, now)

            membership.on_response = on_response  # type: ignore[method-assign]
            await until(lambda: lost and shared([a, b], ALL), "two share the tasks")
        assert_one_owner([a, b])
        assert not a.lost

    run(test())


def test_a_standby_takes_over_from_one_that_dies(server: Server, admin: AdminClient, new_name: NewName) -> None:
    group = new_name()
    topology = word_count(group, create_topic(admin, f"{group}-in", 3))
    configure(admin, group, streams__num__standby__replicas="1", streams__session__timeout__ms="1500")

    async def test() -> None:
        # Apache Kafka 4.4 fails a member that has an endpoint if its coordinator doesn't know the source topic yet
        # (EndpointToPartitionsManager: "No value present"). One without finds out when it does.
        async with joined(server.bootstrap, group, topology) as first:
            await until(lambda: shared([first], ALL), "the coordinator knows the topics")
        endpoints = {"a": Endpoint("a", 1), "b": Endpoint("b", 2)}
        async with joined(server.bootstrap, group, topology, user_endpoint=endpoints["a"]) as a:
            await until(lambda: shared([a], ALL), "the first has everything")
            b = Application(StreamsMember(server.bootstrap, group, topology, user_endpoint=endpoints["b"]))
            await b.member.start()
            await until(lambda: shared([a, b], ALL), "two share the tasks")
            stateful = set(tasks(_1=3))
            await until(
                lambda: a.has(Role.STANDBY) == b.has() & stateful and b.has(Role.STANDBY) == a.has() & stateful,
                "each has copies of what the other one runs",
            )
            await until(
                lambda: {len(a.member.endpoints.get(of, ((), ())).active) for of in endpoints.values()} == {3},
                "each knows who has what",
            )
            await b.kill()
            await until(lambda: shared([a], ALL), "the first has everything, when the session of the other is over")

    run(test())


def test_a_static_member_comes_back_to_its_tasks(server: Server, admin: AdminClient, new_name: NewName) -> None:
    group = new_name()
    topology = word_count(group, create_topic(admin, f"{group}-in", 3))
    configure(admin, group, streams__session__timeout__ms="30000", streams__num__warmup__replicas="0")

    def member(name: str) -> Any:
        return joined(server.bootstrap, group, topology, instance_id=name, process_id=f"{group}-{name}")

    async def test() -> None:
        async with member("a") as a:
            async with member("b") as b:
                await until(lambda: shared([a, b], ALL), "two share the tasks")
                had, seen, epoch = b.has(), len(a.events), a.member.group_metadata().generation
            async with member("b") as again:
                await until(lambda: again.has() == had, "it has what it had")
                assert a.member.group_metadata().generation == epoch
                assert not [event for event in a.events[seen:] if hasattr(event, "tasks")]
                again.member.leave(for_good=True)
                await until(lambda: shared([a], ALL), "it has left for good")
            a.member.leave(for_good=True)
            await a.task

    run(test())


def test_beside_kafka_streams(server: Server, fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), fleet.topic(new_name(), 3), fleet.topic(new_name())
    fleet.configure(application)
    lines, output = Lines(server.bootstrap, source, 3), Output(server.bootstrap, target, 1)
    instance = fleet.start(application, "word-count", source=source, target=target)
    lines.write(30)
    eventually(lambda: output.counts() == lines.counts(), within=60, what="all is counted")
    topology = word_count(application, source)

    async def test() -> None:
        async with joined(server.bootstrap, application, topology) as ours:
            await until(
                lambda: len(ours.has()) == 3 and ours.has() | instance.tasks.active == set(ALL), "both have a share"
            )
            await until(lambda: not ours.has() & instance.tasks.active, "and nothing twice")
        await until(lambda: instance.tasks.active == set(ALL), "all has gone back")
        assert_not_taken_early(instance, ours)
        lines.write(30)
        await until(lambda: output.counts() == lines.counts(), "all is counted, and once")
        async with joined(server.bootstrap, application, topology) as ours:
            instance.begin_close()
            await until(lambda: shared([ours], ALL), "ours has everything when Kafka Streams has closed")

    run(test())
    output.close()
