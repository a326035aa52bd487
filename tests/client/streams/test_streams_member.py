"""Streams members over sockets: against a broker in this process, and against one that says what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.errors import ClosedError, CommitFailedError, UnsupportedError
from kohort.client.streams_member import (
    Assigned,
    Endpoint,
    Event,
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
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Response
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kohort.testing.broker import Broker
from tests.client.support.scripted_broker import Asked, HangUpError, ScriptedBroker
from tests.waiting import run, until

TOPOLOGY = Topology({"0": Subtopology(source_topics=["in"], changelogs=[InternalTopic(name="app-store-changelog")])})
TASKS = [TaskId("0", partition) for partition in range(4)]
QUICK = {"group.streams.heartbeat.interval.ms": 30, "group.streams.task.offset.interval.ms": 50}


class Application:
    """Takes a member's events, and closes what it is to close at once."""

    def __init__(self, member: StreamsMember) -> None:
        self.member = member
        self.events: list[Event] = []
        self.error: Exception | None = None
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        try:
            async for event in self.member:
                self.events.append(event)
                if isinstance(event, Revoked | Lost):
                    self.member.closed(*event.tasks)
        except Exception as error:
            self.error = error

    def seen(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def has(self, role: Role) -> list[int]:
        return sorted(task.partition for task, held in self.member.tasks.items() if held is role)


@asynccontextmanager
async def joined(servers: Any, **settings: Any) -> AsyncIterator[Application]:
    async with StreamsMember(servers, "app", TOPOLOGY, **settings) as member:
        application = Application(member)
        try:
            yield application
        finally:
            if member.state is not State.FAILED:
                await member.close()
            await application.task


@asynccontextmanager
async def broker(data_dir: Path | None = None, **settings: Any) -> AsyncIterator[Broker]:
    """A broker with the topic that is read."""
    async with Broker(QUICK | settings, data_dir=data_dir) as started:
        async with Cluster(started.bootstrap_servers) as cluster:
            new = CreateTopicsRequest.Topic(
                name="in", num_partitions=4, replication_factor=1, assignments=[], configs=[]
            )
            request = CreateTopicsRequest(topics=[new], timeout_ms=5_000, validate_only=False)
            answer = await cluster.ask_any(request, CreateTopicsResponse)
            assert answer.topics[0].error_code == 0
        yield started


def test_tasks_are_shared_and_go_back() -> None:
    async def test() -> None:
        async with broker(**{"group.streams.num.warmup.replicas": 0}) as server:
            async with joined(server.bootstrap_servers) as a:
                await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
                async with joined(server.bootstrap_servers) as b:
                    await until(lambda: len(a.has(Role.ACTIVE)) == len(b.has(Role.ACTIVE)) == 2)
                    assert sorted(a.has(Role.ACTIVE) + b.has(Role.ACTIVE)) == [0, 1, 2, 3]
                    await until(lambda: a.member.state is b.member.state is State.STABLE)
                    assert a.member.group_metadata().generation == b.member.group_metadata().generation > 0
                    b.member.leave()
                    await b.task
                    assert b.member.state is State.LEFT
                    assert not b.member.tasks
                await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            assert not a.seen(Lost)
            assert b.member.ended

    run(test())


def test_a_warm_up_becomes_the_running_task_when_its_state_is_there() -> None:
    async def test() -> None:
        async with broker() as server, joined(server.bootstrap_servers) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            ends = dict.fromkeys(TASKS, 50_000)
            async with joined(server.bootstrap_servers) as b:
                await until(lambda: len(b.has(Role.WARMUP)) == 2)
                first, second = (TASKS[n] for n in b.has(Role.WARMUP))
                assert a.has(Role.ACTIVE) == [0, 1, 2, 3], "it runs until the other one can"
                assert b.member.acceptable_recovery_lag == 10_000
                b.member.report_offsets({first: 50_000, second: 0}, ends)
                await until(lambda: b.has(Role.ACTIVE) == [first.partition])
                assert b.seen(RolesChanged) == [RolesChanged({first: (Role.WARMUP, Role.ACTIVE)})]
                assert b.has(Role.WARMUP) == [second.partition]
                b.member.report_offsets({second: 50_000}, ends)
                await until(lambda: b.has(Role.ACTIVE) == [first.partition, second.partition])

    run(test())


def test_standbys_and_endpoints() -> None:
    async def test() -> None:
        settings = {"group.streams.num.standby.replicas": 1, "group.streams.num.warmup.replicas": 0}
        async with (
            broker(**settings) as server,
            joined(server.bootstrap_servers, user_endpoint=("a", 1)) as a,
            joined(server.bootstrap_servers, user_endpoint=("b", 2)) as b,
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
            broker() as server,
            joined(server.bootstrap_servers) as a,
            joined(server.bootstrap_servers) as b,
        ):
            await until(lambda: a.has(Role.ACTIVE) and b.member.state is State.STABLE)
            b.member.shutdown_application()
            await asyncio.gather(a.task, b.task)
            for one in (a, b):
                assert one.member.state is State.LEFT
                assert len(one.seen(ShutdownRequested)) == 1
                assert not one.member.tasks

    run(test())


def test_sources_that_come_late() -> None:
    async def test() -> None:
        async with Broker(QUICK) as server, joined(server.bootstrap_servers) as a:
            await until(lambda: [status.code for status in a.member.statuses] == [StatusCode.MISSING_SOURCE_TOPICS])
            assert "in" in a.member.statuses[0].detail

    run(test())


def test_members_of_two_topologies_of_one_epoch() -> None:
    async def test() -> None:
        async with broker() as server, joined(server.bootstrap_servers) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            other = Topology({"0": Subtopology(source_topics=["in"])})
            async with StreamsMember(server.bootstrap_servers, "app", other) as b:
                with pytest.raises(KafkaError, match="all members need the same topology"):
                    await b.next_event()
                assert b.state is State.FAILED
                with pytest.raises(KafkaError, match="all members need the same topology"):
                    await b.next_event()

    run(test())


def test_a_newer_topology_is_taken_and_members_of_the_old_one_are_told() -> None:
    async def test() -> None:
        async with broker() as server, joined(server.bootstrap_servers) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            newer = Topology({"0": Subtopology(source_topics=["in"])}, epoch=1)
            async with StreamsMember(server.bootstrap_servers, "app", newer) as b:
                await until(lambda: [status.code for status in a.member.statuses] == [StatusCode.STALE_TOPOLOGY])
                event = await b.next_event()
                while not isinstance(event, Assigned):
                    event = await b.next_event()
                assert sorted(event.tasks) == TASKS
                assert not a.member.tasks

    run(test())


def test_nobody_asks_and_nothing_is_missed() -> None:
    async def test() -> None:
        async with broker() as server, StreamsMember(server.bootstrap_servers, "app", TOPOLOGY) as member:
            assert not member.tasks
            await until(lambda: member.state is State.RECONCILING)
            assert not member.tasks, "the application hasn't asked yet"
            event = await member.next_event(timeout_ms=5_000)
            assert event == Assigned(dict.fromkeys(TASKS, Role.ACTIVE))
            while await member.next_event(timeout_ms=0) is not None:
                pass
            assert await member.next_event(timeout_ms=30) is None
            assert not member.ended

    run(test())


@asynccontextmanager
async def restarted(server: Broker, **options: Any) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A way to end a broker and start another one on its port."""
    async with AsyncExitStack() as stack:
        port = server.server.port

        async def restart() -> None:
            await server._stop()
            await stack.enter_async_context(Broker(QUICK, port=port, **options))

        yield restart


def test_a_broker_that_restarts_is_found_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            broker(data_dir=tmp_path) as server,
            restarted(server, data_dir=tmp_path) as restart,
            joined(server.bootstrap_servers) as a,
        ):
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3] and a.member.state is State.STABLE)
            address, epoch = server.bootstrap_servers, a.member.group_metadata().generation
            await restart()
            async with joined(address) as b:
                await until(lambda: b.member.tasks)
                await until(lambda: a.member.group_metadata().generation > epoch)
                assert not a.seen(Lost)
                assert len(a.seen(Assigned)) == 1

    run(test())


def test_a_broker_that_has_lost_everything() -> None:
    async def test() -> None:
        async with broker() as server, restarted(server) as restart, joined(server.bootstrap_servers) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
            await restart()
            await until(lambda: a.seen(Lost))
            await until(lambda: StatusCode.MISSING_SOURCE_TOPICS in [of.code for of in a.member.statuses])
            assert not a.member.tasks

    run(test())


def test_offsets_are_committed_by_who_runs_the_tasks() -> None:
    async def test() -> None:
        async with broker(**{"group.streams.num.warmup.replicas": 0}) as server:
            async with joined(server.bootstrap_servers) as a:
                await until(lambda: a.has(Role.ACTIVE) == [0, 1, 2, 3])
                zero, one = TopicPartition("in", 0), TopicPartition("in", 1)
                assert await a.member.committed([zero, one]) == {zero: None, one: None}
                await a.member.commit({zero: 7, one: OffsetAndMetadata(8, metadata="note")})
                async with joined(server.bootstrap_servers) as b:
                    await until(lambda: len(a.has(Role.ACTIVE)) == len(b.has(Role.ACTIVE)) == 2)
                    found = await b.member.committed([zero, one])
                    assert found == {zero: OffsetAndMetadata(7), one: OffsetAndMetadata(8, metadata="note")}
                    for application in (a, b):
                        for partition in range(4):
                            offsets = {TopicPartition("in", partition): 9}
                            if partition in application.has(Role.ACTIVE):
                                await application.member.commit(offsets)
                            else:
                                with pytest.raises(CommitFailedError, match="doesn't run these tasks"):
                                    await application.member.commit(offsets)
            with pytest.raises(ClosedError):
                await a.member.commit({zero: 10})

    run(test())


def test_closed_members_stay_closed() -> None:
    async def test() -> None:
        async with broker() as server:
            member = StreamsMember(server.bootstrap_servers, "app", TOPOLOGY)
            await member.close()
            assert member.ended
            assert await member.next_event() is None
            with pytest.raises(ClosedError):
                await member.start()

    run(test())


# Scripted ------------------------------------------------------------------------------------------------------------


def answer(request: StreamsGroupHeartbeatRequest, **fields: Any) -> StreamsGroupHeartbeatResponse:
    joins = request.member_epoch == 0
    given: dict[str, Any] = {
        "member_id": request.member_id,
        "member_epoch": 5 if joins else request.member_epoch,
        "heartbeat_interval_ms": 10,
        "task_offset_interval_ms": 10,
        "acceptable_recovery_lag": 0,
        "active_tasks": [TaskIds(subtopology_id="0", partitions=(0,))] if joins else None,
        "standby_tasks": [] if joins else None,
        "warmup_tasks": [] if joins else None,
        "partitions_by_user_endpoint": None,
    }
    return StreamsGroupHeartbeatResponse(**(given | fields))


class Group:
    """A broker that plays a group. What `next` holds is said to the next heartbeats, instead of all being well."""

    def __init__(self, **options: Any) -> None:
        self.next: list[Callable[[Asked], Response | bytes | None]] = []
        self.found = 0
        script = {FindCoordinatorRequest: self.find, StreamsGroupHeartbeatRequest: self.heartbeat}
        self.server = ScriptedBroker(script, **options)

    def find(self, asked: Asked) -> Response:
        self.found += 1
        coordinator = FindCoordinatorResponse.Coordinator(
            key="app", node_id=1, host=self.server.host, port=self.server.port
        )
        return FindCoordinatorResponse(coordinators=[coordinator])

    def heartbeat(self, asked: Asked) -> Response | bytes | None:
        assert isinstance(asked.request, StreamsGroupHeartbeatRequest)
        if self.next:
            return self.next.pop(0)(asked)
        # Whoever says everything is told everything.
        given = {
            "active_tasks": [TaskIds(subtopology_id="0", partitions=(0,))],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        return answer(asked.request, **(given if asked.request.process_id is not None else {}))

    @property
    def heard(self) -> list[StreamsGroupHeartbeatRequest]:
        return [asked.request for asked in self.server.asked if isinstance(asked.request, StreamsGroupHeartbeatRequest)]

    @property
    def config(self) -> ClientConfig:
        quick = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 20, "reconnect_backoff_ms": 10}
        return ClientConfig(bootstrap_servers=self.server.address, request_timeout_ms=2000, **quick)


def refuse(code: ErrorCode) -> Callable[[Asked], Response]:
    return lambda asked: answer(asked.request, error_code=code, error_message="why not")


def hang_up(asked: Asked) -> Response:
    raise HangUpError(b"\0\0")


def nonsense(asked: Asked) -> Response:
    return answer(asked.request, active_tasks=[TaskIds(subtopology_id="0", partitions=(-5,))])


@pytest.mark.parametrize(
    ("fault", "finds"),
    [
        (refuse(ErrorCode.NOT_COORDINATOR), True),
        (refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), False),
        (hang_up, True),
        (lambda asked: None, True),
        (lambda asked: b"\0\0\0\4\1\2\3\4", True),
        (nonsense, False),
    ],
    ids=["not coordinator", "loading", "cut off", "silent", "garbage", "nonsense"],
)
def test_after_any_fault_it_goes_on_where_it_was(fault: Any, finds: bool) -> None:
    async def test() -> None:
        group = Group()
        async with group.server, joined(group.config) as a:
            await until(lambda: len(group.heard) > 2)
            found, said = group.found, len(group.heard)
            group.next.append(fault)
            await until(lambda: len(group.heard) > said + 3)
            full = [request for request in group.heard[said:] if request.process_id is not None]
            assert [request.member_epoch for request in full] == [5]
            assert [ids.partitions for ids in full[0].active_tasks or ()] == [(0,)]
            assert (group.found > found) == finds
            assert a.has(Role.ACTIVE) == [0]
            assert len(a.seen(Assigned)) == 1

    run(test())


def test_fenced_it_comes_back() -> None:
    async def test() -> None:
        group = Group()
        async with group.server, joined(group.config) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0])
            group.next.append(refuse(ErrorCode.FENCED_MEMBER_EPOCH))
            await until(lambda: a.seen(Lost) and a.has(Role.ACTIVE) == [0])
            assert [request.member_epoch for request in group.heard if request.topology] == [0, 0]
        assert [request.member_epoch for request in group.heard][-1] == -1

    run(test())


def test_fatal_errors_are_raised_where_events_are_awaited() -> None:
    async def test() -> None:
        group = Group()
        async with group.server, joined(group.config) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0])
            group.next.append(refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            await a.task
            assert isinstance(a.error, KafkaError)
            assert a.error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
            assert a.seen(Lost)
            said = len(group.heard)
        assert len(group.heard) == said, "there is nothing to leave"

    run(test())


def test_a_broker_without_streams_groups() -> None:
    async def test() -> None:
        group = Group(versions={StreamsGroupHeartbeatRequest: (5, 6)})
        async with group.server, joined(group.config) as a:
            await a.task
            assert isinstance(a.error, UnsupportedError)
            assert "take Apache Kafka 4.2 or kohort serve" in str(a.error)

    run(test())


def test_a_broker_of_kafka_4_2() -> None:
    async def test() -> None:
        group = Group(versions={StreamsGroupHeartbeatRequest: (0, 0)})
        async with group.server, joined(group.config) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0])
            a.member.report_offsets({TASKS[0]: 1}, {TASKS[0]: 1})
            await until(lambda: len(group.heard) > 5)
            assert all(request.task_offsets is None for request in group.heard)

    run(test())


@pytest.mark.parametrize("stays", [True, False], ids=["goes on", "fenced"])
def test_a_commit_that_crosses_a_new_epoch(stays: bool) -> None:
    async def test() -> None:
        group = Group()
        partition = TopicPartition("in", 0)

        def commit(asked: Asked) -> Response:
            assert isinstance(asked.request, OffsetCommitRequest)
            epoch = asked.request.generation_id_or_member_epoch
            wrong = ErrorCode.STALE_MEMBER_EPOCH if stays else ErrorCode.UNKNOWN_MEMBER_ID
            if epoch == 5:
                group.next.append(
                    (lambda asked: answer(asked.request, member_epoch=6))
                    if stays
                    else refuse(ErrorCode.UNKNOWN_MEMBER_ID)
                )
            of = OffsetCommitResponse.Topic
            failed = of.Partition(partition_index=0, error_code=wrong if epoch == 5 else 0)
            return OffsetCommitResponse(topics=[of(name="in", partitions=[failed])])

        group.server.script[OffsetCommitRequest] = commit
        async with group.server, joined(group.config) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0])
            if stays:
                await a.member.commit({partition: 3})
                assert a.member.group_metadata().generation == 6
            else:
                with pytest.raises(CommitFailedError):
                    await a.member.commit({partition: 3})

    run(test())


def test_closing_ends_even_if_nobody_answers() -> None:
    async def test() -> None:
        group = Group()
        async with group.server, joined(group.config) as a:
            await until(lambda: a.has(Role.ACTIVE) == [0])
            group.next.extend([lambda asked: None] * 100)
            started = asyncio.get_running_loop().time()
            await a.member.close(timeout_ms=100)
            assert asyncio.get_running_loop().time() - started < 5
            assert a.member.state is State.LEFT

    run(test())


def test_a_coordinator_that_cannot_be_asked_for() -> None:
    async def test() -> None:
        group = Group()
        group.server.script[FindCoordinatorRequest] = lambda asked: FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(
                    key="app", node_id=-1, host="", port=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
                )
            ]
        )
        async with group.server, joined(group.config) as a:
            await a.task
            assert isinstance(a.error, KafkaError)
            assert "needs READ on the group" in str(a.error)

    run(test())
