"""`kohort place --from-group` with a broker: ours, or with KOHORT_INTEROP_AGAINST=kafka Apache Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kohort.client import Admin, StreamsMember
from kohort.client.errors import ClientError
from kohort.client.placed_group import read_placed_group
from kohort.client.streams_member import InternalTopic, Lost, Revoked, Role, Subtopology, Topology
from kohort.coordinator.placement import Member, SubtopologyTasks
from kohort.protocol.errors import KafkaError

from ..interop.servers import Server, new_server
from ..interop.topics import create_topic
from .support import invoke
from .test_place import lines

PATIENCE = 60.0
QUICK = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
WORDS = Topology(
    {
        "0": Subtopology(source_topics=["lines"], repartition_sinks=["words-repartition"]),
        "1": Subtopology(
            repartition_sources=[InternalTopic("words-repartition", partitions=3)],
            changelogs=[InternalTopic("words-changelog")],
        ),
    }
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = new_server(tmp_path_factory.mktemp("server"), QUICK)
    create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), "lines", 4)
    yield server
    server.stop()


def as_described(member: StreamsMember, process: str) -> Member:
    active = frozenset(task for task, role in member.tasks.items() if role is Role.ACTIVE)
    return Member(member.member_id, process, {"zone": process}, active)


async def follow(member: StreamsMember) -> None:
    """Closes what the group takes back."""
    async for event in member:
        match event:
            case Revoked(tasks) | Lost(tasks):
                member.closed(*tasks)


def test_a_group_that_runs(server: Server, tmp_path: Path) -> None:
    async def scenario() -> None:
        members = [
            StreamsMember(server.bootstrap, "words", WORDS, process_id=process, client_tags={"zone": process})
            for process in ("p1", "p2")
        ]
        one, two = members
        async with one, two, Admin(server.bootstrap) as admin, asyncio.TaskGroup() as running:
            followers = [running.create_task(follow(member)) for member in members]
            group = None
            while group is None or {len(member.active) for member in group.members} != {3, 4}:
                with contextlib.suppress(KafkaError, ClientError):  # there is no such group yet, or it has no topology
                    group, notes = await read_placed_group(admin, "words")
                await asyncio.sleep(0.1)
            assert notes == []
            assert group.subtopologies == (SubtopologyTasks("0", 4), SubtopologyTasks("1", 3, 1))
            assert sorted(group.members, key=lambda member: member.process) == [
                as_described(one, "p1"), as_described(two, "p2")
            ]  # fmt: skip
            assert (group.standbys, group.acceptable_lag) == (0, 10_000)

            path = tmp_path / "words.yaml"
            call = ("--from-group", "words", "-b", server.bootstrap, "--what-if", "add=2", "--save", str(path))
            done = await asyncio.to_thread(invoke, "place", *call)
            assert (done.exit_code, done.stderr) == (0, "")
            assert lines(done.stdout)["active tasks of a member"][0] == "3 to 4"
            assert invoke("place", str(path), "--what-if", "add=2").stdout == done.stdout
            for follower in followers:
                follower.cancel()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_a_group_that_is_not_there(server: Server) -> None:
    done = invoke("place", "--from-group", "nobody", "-b", server.bootstrap)
    assert done.exit_code == 3
    assert "there is no group 'nobody'" in done.stderr
