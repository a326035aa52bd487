"""Share groups with programs that aren't ours: librdkafka's and Java's consumers, and kafka-share-groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient

from ..waiting import eventually
from .java.jvm import Finished, Tools
from .servers import Server, new_server
from .topics import create_topic

GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"

RunTool = Callable[..., Finished]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = new_server(tmp_path_factory.mktemp("server"), {"share.coordinator.state.topic.num.partitions": "2"})
    yield server
    server.stop()


@pytest.fixture
def run_tool(tools: Tools, server: Server) -> RunTool:
    """Runs a tool, which must succeed, against the server."""
    return partial(tools.succeed, server.bootstrap)


@pytest.fixture
def topic(server: Server, new_name: Callable[[], str]) -> str:
    """A topic of two partitions with 10 records each, whose name is that of the group, too."""
    name = new_name()
    create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), name, 2)
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(20):
        producer.produce(name, str(number).encode(), partition=number % 2)
    assert producer.flush(20) == 0
    return name


def rows(done: Finished) -> list[list[str]]:
    """The cells of a table, without its head."""
    return sorted(line.split() for line in done.lines[1:])


class Member:
    """librdkafka's share consumer, which acknowledges what it has taken with the next poll."""

    def __init__(self, server: Server, group: str) -> None:
        self.consumer = ShareConsumer({"bootstrap.servers": server.bootstrap, "group.id": group, "client.id": "rd"})
        self.consumer.subscribe([group])
        self.taken: list[int] = []

    def take(self, count: int) -> list[int]:
        deadline = time.monotonic() + 20
        while len(self.taken) < count and time.monotonic() < deadline:
            self.taken += [int(message.value()) for message in self.consumer.poll(timeout=0.2) or ()]
        self.taken += [int(message.value()) for message in self.consumer.poll(timeout=0.2) or ()]
        return sorted(self.taken)

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture
def from_the_beginning(run_tool: RunTool, topic: str) -> str:
    """The group of the topic's name, which begins with the first record."""
    begin = "share.auto.offset.reset=earliest"
    run_tool(CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", topic, "--add-config", begin)
    return topic


def lags(run_tool: RunTool, group: str) -> list[list[str]]:
    """Partition and lag. The start offset that is stored goes on with the write after the one that moves it."""
    return [[row[2], row[4]] for row in rows(run_tool(GROUPS, "--describe", "--group", group))]


@pytest.mark.long
def test_what_it_tells_of_a_group_with_a_member(
    run_tool: RunTool, tools: Tools, server: Server, from_the_beginning: str
) -> None:
    group = from_the_beginning
    member = Member(server, group)
    try:
        assert member.take(20) == list(range(20))
        assert group in run_tool(GROUPS, "--list").lines
        assert [group, "Stable"] in rows(run_tool(GROUPS, "--list", "--state"))
        (described,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--state"))
        assert (described[0], described[-2:]) == (group, ["Stable", "1"])
        (who,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--members"))
        assert (who[0], who[-1]) == (group, f"{group}:0,1")
        refused = run_tool(GROUPS, "--delete-offsets", "--group", group, "--topic", group)
        assert "has members" in refused.out
        where = ["--bootstrap-server", server.bootstrap, "--group", group, "--topic", group]
        reset = tools.run(GROUPS, *where, "--reset-offsets", "--to-latest", "--execute")
        assert reset.code == 1 and "is not empty" in reset.out + reset.err
    finally:
        member.close()
    eventually(lambda: lags(run_tool, group) == [["0", "0"], ["1", "0"]], what="all is acknowledged")
    assert [group, "Empty"] in rows(run_tool(GROUPS, "--list", "--state"))


def test_offsets_are_reset_and_records_come_again(run_tool: RunTool, server: Server, from_the_beginning: str) -> None:
    group = from_the_beginning
    first = Member(server, group)
    assert first.take(20) == list(range(20))
    first.close()

    reset = run_tool(GROUPS, "--reset-offsets", "--group", group, "--topic", f"{group}:1", "--to-earliest", "--execute")
    assert [group, group, "1", "0"] in rows(reset)
    second = Member(server, group)
    again = second.take(10)
    second.close()

    assert again == list(range(1, 20, 2))


def test_a_group_is_deleted_with_its_offsets(run_tool: RunTool, server: Server, from_the_beginning: str) -> None:
    group = from_the_beginning
    member = Member(server, group)
    member.take(20)
    member.close()

    assert "successful" in run_tool(GROUPS, "--delete-offsets", "--group", group, "--topic", group).out.lower()
    assert "successful" in run_tool(GROUPS, "--delete", "--group", group).out.lower()

    assert group not in run_tool(GROUPS, "--list").out


def test_javas_console_consumer(run_tool: RunTool, from_the_beginning: str) -> None:
    group = from_the_beginning
    done = run_tool(CONSOLE, "--topic", group, "--group", group, "--max-messages", "20", "--timeout-ms", "20000")

    assert sorted(int(line) for line in done.lines if line.isdigit()) == list(range(20))
