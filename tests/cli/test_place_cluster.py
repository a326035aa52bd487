"""`kohort place --from-group` with a broker: ours, or with KOHORT_INTEROP_AGAINST=kafka Apache Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kohort.cli.placing.live_group import read_live_group
from kohort.cli.placing.wire import Connection
from kohort.coordinator.placement import Member, SubtopologyTasks, TaskId
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicInfo,
)

from ..interop.servers import Server, new_server
from ..interop.topics import create_topic
from ..interop.waiting import eventually
from .test_place import lines, run

Topology = StreamsGroupHeartbeatRequest.Topology
PATIENCE = 60.0
QUICK = {"group.streams.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = new_server(tmp_path_factory.mktemp("server"), QUICK)
    create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), "lines", 4)
    yield server
    server.stop()


@dataclass
class Streams:
    """A member of a streams group that does as it is told: what it is given, it says it has."""

    connection: Connection
    process: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    has: list[TaskIds] = field(default_factory=list)

    def beat(self) -> None:
        joining = self.epoch == 0
        answer = self.connection.ask(
            StreamsGroupHeartbeatRequest(
                group_id="words",
                member_id=self.id,
                member_epoch=self.epoch,
                rebalance_timeout_ms=60_000 if joining else -1,
                topology=topology() if joining else None,
                process_id=self.process,
                client_tags=[KeyValue(key="zone", value=self.process)],
                active_tasks=self.has,
                standby_tasks=[],
                warmup_tasks=[],
            ),
            StreamsGroupHeartbeatResponse,
        )
        if ErrorCode(answer.error_code).retriable:  # the coordinator is on its way
            return
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.has = answer.active_tasks

    def tasks(self) -> frozenset[TaskId]:
        return frozenset(TaskId(of.subtopology_id, partition) for of in self.has for partition in of.partitions)


def topology() -> Topology:
    parts = [
        Topology.Subtopology(
            subtopology_id="0", source_topics=("lines",), repartition_sink_topics=("words-repartition",)
        ),
        Topology.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[TopicInfo(name="words-repartition", partitions=3)],
            state_changelog_topics=[TopicInfo(name="words-changelog")],
        ),
    ]
    return Topology(epoch=0, subtopologies=parts)


def test_a_group_that_runs(server: Server, tmp_path: Path) -> None:
    address = server.host, server.port
    with Connection(address, time.monotonic() + PATIENCE) as connection:
        eventually(lambda: coordinated(connection), within=PATIENCE, what="the group has a coordinator")
        one, two = Streams(connection, "p1"), Streams(connection, "p2")

        def shared() -> bool:
            one.beat()
            two.beat()
            return len(one.tasks() | two.tasks()) == 7 and min(len(one.tasks()), len(two.tasks())) >= 3

        eventually(shared, within=PATIENCE, what="the two share the tasks")
        group, notes = read_live_group(address, "words", PATIENCE)
        assert notes == []
        assert group.subtopologies == (SubtopologyTasks("0", 4), SubtopologyTasks("1", 3, 1))
        assert sorted(group.members, key=lambda member: member.process) == [
            Member(one.id, "p1", {"zone": "p1"}, one.tasks()),
            Member(two.id, "p2", {"zone": "p2"}, two.tasks()),
        ]
        assert (group.standbys, group.acceptable_lag) == (0, 10_000)

        path = tmp_path / "words.yaml"
        done = run("--from-group", server.bootstrap, "words", "--what-if", "add=2", "--save", str(path))
        assert (done.exit_code, done.stderr) == (0, "")
        assert lines(done.stdout)["active tasks of a member"][0] == "3 to 4"
        assert run(str(path), "--what-if", "add=2").stdout == done.stdout


def coordinated(connection: Connection) -> bool:
    """Whether the broker has made the coordinators' topic."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("words",))
    (found,) = connection.ask(request, FindCoordinatorResponse).coordinators
    return not found.error_code


def test_a_group_that_is_not_there(server: Server) -> None:
    done = run("--from-group", server.bootstrap, "nobody")
    assert done.exit_code == 3
    assert f"there is no streams group nobody at {server.bootstrap}" in done.stderr
