"""exactly_once_v2, though instances come, go and are killed: Kafka Streams writes what a batch computation gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ..waiting import eventually
from .conftest import watch
from .servers import Server, new_server
from .streams_apps import QUICK_STREAMS, WITHIN, Fleet, Garage, Instance, share, tasks
from .streams_words import Feeder, Lines, Output, pairs

pytestmark = pytest.mark.long

ALL = tasks(_0=3, _1=3)


class WordCount:
    """Word count over three partitions, and what goes in and comes out."""

    def __init__(self, fleet: Fleet, application: str) -> None:
        self.fleet, self.application = fleet, application
        self.source, self.target = fleet.topic(f"{application}-in", 3), fleet.topic(f"{application}-out", 2)
        self.lines = Lines(fleet.server.bootstrap, self.source, 3)
        self.output = Output(fleet.server.bootstrap, self.target, 2)

    def start(self, *, own: bool = False) -> Instance:
        process = self.fleet.process() if own else None
        topics = {"source": self.source, "target": self.target}
        return self.fleet.start(self.application, "word-count", process=process, **topics)

    def settle(self, *instances: Instance) -> None:
        """Wait until these share the tasks, and then count more words than were counted."""
        eventually(lambda: share(instances, ALL), within=WITHIN, what=f"{len(instances)} share the tasks")
        before = sum(self.output.counts().values())
        eventually(lambda: sum(self.output.counts().values()) > before, within=WITHIN, what="they go on counting")

    def finish(self) -> None:
        """Wait until all that was written is counted."""
        expected = self.lines.counts()
        eventually(lambda: self.output.counts() == expected, within=WITHIN, what="every word is counted")
        self.output.close()


def test_one_instance_three_one_killed_one(fleet: Fleet, new_name: Callable[[], str]) -> None:
    job = WordCount(fleet, new_name())
    with Feeder(job.lines):
        a = job.start()
        job.settle(a)
        b, c = job.start(own=True), job.start()
        job.settle(a, b, c)
        b.process.kill()
        job.settle(a, c)
        a.close()
        job.settle(c)
    job.finish()


def test_the_server_is_killed(garage: Garage, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = new_server(tmp_path / "server", QUICK_STREAMS)
    watch(request.node, server)
    try:
        fleet = Fleet(server, tmp_path, garage.shared)
        try:
            _killed_twice(server, WordCount(fleet, "words"))
        finally:
            fleet.end()
    finally:
        server.stop()


def _killed_twice(server: Server, job: WordCount) -> None:
    with Feeder(job.lines):
        both = job.start(), job.start()
        job.settle(*both)
        for _ in range(2):
            server.kill()
            server.restart()
            job.settle(*both)
    job.finish()


@pytest.mark.parametrize("topology", ["join", "rekeyed-join"])
def test_a_windowed_join(fleet: Fleet, new_name: Callable[[], str], topology: str) -> None:
    rekeyed = topology == "rekeyed-join"
    # What is keyed anew may come in as many partitions as it likes: what is between has as many as the other side.
    sides = {"left": fleet.topic(new_name(), 2 if rekeyed else 3), "right": fleet.topic(new_name(), 3)}
    target, application = fleet.topic(new_name(), 2), new_name()
    written: dict[str, dict[str, list[tuple[int, str]]]] = {"left": {}, "right": {}}
    producer = Producer({"bootstrap.servers": fleet.server.bootstrap, "partitioner": "murmur2_random"})

    def write(since: int) -> None:
        for number in range(since, since + 60):
            for side, topic in sides.items():
                key, value, at = f"key-{number % 7}", f"{side}-{number}", 1_700_000_000_000 + 1_000 * number
                written[side].setdefault(key, []).append((at, value))
                text = f"{key}:{value}" if rekeyed and side == "left" else value
                by = None if rekeyed and side == "left" else key
                producer.produce(topic, text, by, timestamp=at)
        assert producer.flush(20) == 0

    def start() -> Instance:
        return fleet.start(application, topology, **sides, target=target)

    write(0)
    a = start()
    output = Output(fleet.server.bootstrap, target, 2)
    eventually(output.read, within=WITHIN, what="something is joined")
    b = start()
    all_tasks = tasks(_0=2, _1=3) if rekeyed else tasks(_0=3)
    eventually(lambda: share([a, b], all_tasks), within=WITHIN, what="both share the tasks")
    write(60)
    expected = pairs(written["left"], written["right"])
    assert sum(map(len, expected.values())) > 120, "it does join"

    def joined() -> dict[str, list[str]]:
        return {key: sorted(values) for key, values in output.read().items()}

    eventually(lambda: joined() == expected, within=WITHIN, what="all is joined, and once")
    output.close()
