"""kafka-streams-groups, Apache Kafka's own command line tool, on a running application and on one that is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from ..waiting import eventually
from .java.jvm import Finished, Tools
from .streams_apps import WITHIN, Fleet, Garage, Instance, share, tasks
from .streams_words import Lines, Output

GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"

RunTool = Callable[..., Finished]


@pytest.fixture
def run_tool(tools: Tools, garage: Garage) -> RunTool:
    """Runs a tool, which must succeed, against the server."""
    return partial(tools.succeed, garage.server.bootstrap)


class Counted:
    """An application that has counted words, and is still there."""

    def __init__(self, fleet: Fleet, application: str) -> None:
        self.fleet, self.application = fleet, application
        self.source, self.target = fleet.topic(f"{application}-in", 2), fleet.topic(f"{application}-out")
        self.internal = {f"{application}-counts-changelog", f"{application}-words-repartition"}
        self.lines = Lines(fleet.server.bootstrap, self.source, 2)
        self.output = Output(fleet.server.bootstrap, self.target, 1)
        self.instance = self.start()
        self.lines.write(20)
        eventually(lambda: self.output.counts() == self.lines.counts(), within=WITHIN, what="all is counted")
        eventually(lambda: self.committed() == [10, 10], what="all is committed")

    def start(self) -> Instance:
        instance = self.fleet.start(self.application, "word-count", source=self.source, target=self.target)
        eventually(lambda: share([instance], tasks(_0=2, _1=2)), within=WITHIN, what="it runs")
        return instance

    def committed(self) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.fleet.server.bootstrap, "group.id": self.application})
        found = consumer.committed([TopicPartition(self.source, partition) for partition in range(2)], timeout=20)
        consumer.close()
        return [partition.offset for partition in found]

    def internal_topics(self) -> set[str]:
        return self.internal & self.fleet.admin.list_topics(timeout=20).topics.keys()


@pytest.fixture
def counted(fleet: Fleet, new_name: Callable[[], str]) -> Iterator[Counted]:
    counted = Counted(fleet, new_name())
    yield counted
    counted.output.close()


def rows(done: Finished) -> list[list[str]]:
    """The cells of a table, without its head."""
    return sorted(line.split() for line in done.lines[1:])


@pytest.mark.long
def test_what_it_tells_of_a_running_application(run_tool: RunTool, tools: Tools, counted: Counted) -> None:
    group, source = counted.application, counted.source
    assert group in run_tool(GROUPS, "--list").lines
    assert [group, "Stable"] in rows(run_tool(GROUPS, "--list", "--state"))
    assert [group, "Stable"] in rows(run_tool(GROUPS, "--list", "--state", "stable"))
    assert group not in run_tool(GROUPS, "--list", "--state", "empty").out

    offsets = rows(run_tool(GROUPS, "--describe", "--group", group, "--verbose"))
    assert [row[1:] for row in offsets if row[1] == source] == [
        [source, str(partition), "10", "0", "10", "0"] for partition in range(2)
    ], "offsets of the source"
    (described,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--state", "--verbose"))
    group_epoch, target_epoch = described[4:6]
    assert [described[0], described[3], described[6]] == [group, "Stable", "1"]
    assert group_epoch == target_epoch and int(group_epoch) > 0
    (member,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--members", "--verbose"))
    assert [member[n] for n in (0, 1, 2, 4, 5)] == [group, target_epoch, "0", "streams", target_epoch]
    assert member[7] == f"{group}-{member[6]}-StreamThread-1-consumer", "the client id has the process id in it"
    active = ["0:[0,1];", "1:[0,1];"]
    assert member[8:] == ["ACTIVE:", *active, "TARGET-ACTIVE:", *active]

    unknown = tools.run(GROUPS, "--bootstrap-server", counted.fleet.server.bootstrap, "--describe", "--group", "nobody")
    assert unknown.code == 1
    assert "GroupIdNotFoundException" in unknown.out


def test_what_it_refuses_while_the_application_runs(run_tool: RunTool, counted: Counted) -> None:
    which = ["--group", counted.application]
    reset = run_tool(GROUPS, "--reset-offsets", *which, "--all-input-topics", "--to-earliest", "--execute")
    assert f"group '{counted.application}' is inactive, but the current state is Stable" in reset.out
    assert "GroupNotEmptyException" in run_tool(GROUPS, "--delete", *which).out
    deleted = run_tool(GROUPS, "--delete-offsets", *which, "--input-topic", counted.source)
    assert deleted.out.count("GroupSubscribedToTopicException") == 2
    assert counted.committed() == [10, 10]


def test_offsets_are_reset_and_everything_is_counted_again(run_tool: RunTool, counted: Counted) -> None:
    counted.instance.close()
    which = ["--group", counted.application]

    def reset(*how: str) -> list[list[str]]:
        return [row[2:] for row in rows(run_tool(GROUPS, "--reset-offsets", *which, *how))]

    assert reset("--all-input-topics", "--to-earliest", "--dry-run") == [["0", "0"], ["1", "0"]]
    assert counted.committed() == [10, 10]
    assert reset("--input-topic", f"{counted.source}:1", "--shift-by", "-2", "--execute") == [["1", "8"]]
    assert counted.committed() == [10, 8]
    all_internal = "--delete-all-internal-topics"
    assert reset("--all-input-topics", "--to-offset", "0", "--execute", all_internal) == [["0", "0"], ["1", "0"]]
    eventually(lambda: not counted.internal_topics(), what="the internal topics are gone")
    first = {word: list(counts) for word, counts in counted.output.values.items()}
    counted.start()
    assert counted.internal_topics() == counted.internal
    eventually(
        lambda: counted.output.read() == {word: counts * 2 for word, counts in first.items()},
        what="all is counted a second time, from nothing",
    )


def test_an_application_is_deleted(run_tool: RunTool, counted: Counted) -> None:
    counted.instance.close()
    group = counted.application
    assert [group, "Empty"] in rows(run_tool(GROUPS, "--list", "--state"))
    deleted = run_tool(GROUPS, "--delete-offsets", "--group", group, "--input-topic", f"{counted.source}:1")
    assert rows(deleted)[-1] == [counted.source, "1", "Successful"]
    assert counted.committed() == [10, -1001], "the second partition has none now"
    assert (
        f"('{group}') was successful"
        in run_tool(GROUPS, "--delete", "--group", group, "--delete-all-internal-topics").out
    )
    assert group not in run_tool(GROUPS, "--list").lines
    eventually(lambda: not counted.internal_topics(), what="the internal topics are gone")
    assert counted.committed() == [-1001, -1001]


@pytest.mark.long
def test_settings_of_a_group(run_tool: RunTool, counted: Counted) -> None:
    entity = ["--entity-type", "groups", "--entity-name", counted.application]
    # Kafka 4.2 forgets the server's own defaults for a group that has any setting of its own.
    quick = "streams.session.timeout.ms=3000,streams.heartbeat.interval.ms=200,streams.initial.rebalance.delay.ms=0"
    run_tool(CONFIGS, "--alter", *entity, "--add-config", f"streams.num.standby.replicas=1,{quick}")
    assert "streams.num.standby.replicas=1 sensitive=false" in run_tool(CONFIGS, "--describe", *entity).out
    other = counted.fleet.start(counted.application, "word-count", source=counted.source, target=counted.target)
    both = [counted.instance, other]
    eventually(
        lambda: sorted(task for i in both for task in i.tasks.standby) == tasks(_1=2),
        within=WITHIN,
        what="each stateful task has a standby",
    )
    run_tool(CONFIGS, "--alter", *entity, "--delete-config", "streams.num.standby.replicas")
    eventually(lambda: not any(i.tasks.standby for i in both), within=WITHIN, what="the standbys are gone")
