"""Consumer and share groups of Java's and librdkafka's members, with Kohort's broker and with Apache Kafka's in turn.

    make bench-groups
    python -m benchmarks.groups --quick
    python -m benchmarks.groups --only joins

Both brokers have their own defaults (Kafka's JVM flags are those of its start script) and what one node needs to be
alone. Each piece of work runs in a process of its own, which does it once in small before the clock runs. Figures are
medians of rounds. A share group's rate counts from its first record, when others of its members may still be joining:
there are so many records that this makes little difference. They have 100 bytes, and 4 partitions.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from rich.console import Console

from benchmarks.broker import librdkafka, peers
from benchmarks.broker.measures import table
from benchmarks.broker.peers import Peer
from benchmarks.broker.process import cpu_seconds
from benchmarks.groups import memory
from benchmarks.groups.measures import JOINERS, SHARES, Shared, measures
from tests.interop.java import build
from tests.tools import MAVEN, need

JAVA = ("java", "-Xms512m", "-Xmx512m", "-Djava.awt.headless=true")
MAIN_CLASSES = {"joins": "kohort.benchmarks.Joins", "shares": "kohort.benchmarks.Shares"}
SIZE = 100
PARTITIONS_EACH = 4
"""For each member of a consumer group."""
TIMEOUT = 300.0
PARTS = ("joins", "shares", "memory")


@dataclass(frozen=True)
class Scale:
    """How much.

    Attributes:
        joining: ways to join, by key: all members, those of them that are late, and the seconds that the others rest.
        shares: ways to consume as a share group.
        records, warm_up: records that are shared, and those to warm up with.
        partitions: those with 2,000 records in flight each.
        settings: of both brokers, beside their defaults.
    """

    rounds: int
    joining: Mapping[str, tuple[int, int, float]]
    shares: Sequence[Shared]
    records: int
    warm_up: int
    partitions: int
    settings: Mapping[str, str]

    @property
    def members(self) -> int:
        """The most that join at once."""
        return max(late for _, late, _ in self.joining.values())


FULL = Scale(
    rounds=3,
    joining={"third": (3, 1, 0), "rested": (3, 1, 8), "three": (3, 3, 0), "many": (200, 200, 0)},
    shares=SHARES,
    records=4_000_000,
    warm_up=200_000,
    partitions=500,
    settings={},
)
QUICK = Scale(
    rounds=1,
    joining={"third": (3, 1, 0), "many": (5, 5, 0)},
    shares=[shared for shared in SHARES if shared.members == 1 and shared.mode in ("implicit", "batches")],
    records=4_000,
    warm_up=1_000,
    partitions=2,
    settings={
        f"group.{kind}.{key}heartbeat.interval.ms": "300" for kind in ("consumer", "share") for key in ("min.", "")
    },
)


class Benchmark:
    """The two brokers, and what has been measured: by measure and peer, a list of figures."""

    def __init__(self, directory: Path, scale: Scale) -> None:
        self.scale = scale
        self.peers = [peers.kohort(directory), peers.newest_kafka(directory)]
        for peer in self.peers:
            peer.server.settings |= scale.settings
        self.found: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.names = (f"benchmark-{number}" for number in itertools.count())
        self.filled: dict[str, tuple[str, str]] = {}

    def run(self, parts: Iterable[str], say: Callable[[str], None]) -> None:
        """Start both, and do it all in rounds; memory first and once, while there is nothing else."""
        say("building Java's members")
        self.java = build.built(Path(__file__).parent / "java", "groups")
        wanted = [part for part in PARTS if part in set(parts)]
        for peer in self.peers:
            say(f"starting {peer.name}")
            peer.start()
            if "memory" in wanted:
                say(f"records in flight with {peer.name}")
                self.memory(peer)
            self.filled[peer.name] = self._filled(peer, self.scale.warm_up), self._filled(peer, self.scale.records)
        for number in range(self.scale.rounds):
            for part in (part for part in wanted if part != "memory"):
                for peer in self.peers:
                    getattr(self, part)(
                        peer,
                        lambda what: say(f"round {number + 1} of {self.scale.rounds}: {what}"),  # noqa: B023
                    )

    def stop(self) -> None:
        """End both brokers."""
        for peer in self.peers:
            peer.stop()

    def joins(self, peer: Peer, say: Callable[[str], None]) -> None:
        """Members join a consumer group."""
        for library in JOINERS:
            for key, (members, late, rest) in self.scale.joining.items():
                say(f"{members} members of {library} join with {peer.name}")
                topic = next(self.names)
                partitions = members * PARTITIONS_EACH
                librdkafka.create_topic(peer, topic, partitions)
                found = self._work(library, "joins", peer, topic, topic, partitions, members, late, rest)
                self.note(peer, f"{library} {key}", found["seconds"])

    def shares(self, peer: Peer, say: Callable[[str], None]) -> None:
        """Share groups consume all records."""
        warm_up, topic = self.filled[peer.name]
        for shared in self.scale.shares:
            say(f"{shared.title}, with {peer.name}")
            group = next(self.names)
            for name in (group, f"{group}-warm-up"):
                configure(peer, name, **{"share.auto.offset.reset": "earliest"})
            served = cpu_seconds(peer.pid)
            found = self._work(
                shared.library, "shares", peer, group, shared.mode, shared.members,
                warm_up, self.scale.warm_up, topic, self.scale.records,
            )  # fmt: skip
            served = cpu_seconds(peer.pid) - served
            self.note(peer, shared.key, self.scale.records / found["seconds"])
            self.note(peer, f"{shared.key} server", served / (self.scale.records + self.scale.warm_up) * 1e6)

    def memory(self, peer: Peer) -> None:
        """All records of many partitions are in flight."""
        topic, group = next(self.names), next(self.names)
        librdkafka.create_topic(peer, topic, self.scale.partitions)
        configure(peer, group, **{"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "60000"})
        for partition in range(self.scale.partitions):
            produce(peer, topic, memory.PER_PARTITION, partition)
        for key, figure in asyncio.run(memory.in_flight(peer, group, topic, self.scale.partitions)).items():
            self.note(peer, f"memory {key}", figure)

    def note(self, peer: Peer, measure: str, figure: float) -> None:
        """Keep a figure of this round."""
        self.found[measure, peer.name].append(figure)

    def medians(self, measure: str) -> tuple[float, ...] | None:
        """Over the rounds, by peer; None if it wasn't measured."""
        figures = [self.found[measure, peer.name] for peer in self.peers]
        return tuple(map(statistics.median, figures)) if all(figures) else None

    def _filled(self, peer: Peer, records: int) -> str:
        topic = next(self.names)
        librdkafka.create_topic(peer, topic)
        for partition in range(librdkafka.PARTITIONS):
            produce(peer, topic, records // librdkafka.PARTITIONS, partition)
        return topic

    def _work(self, library: str, work: str, peer: Peer, *arguments: str | float) -> dict[str, float]:
        """What a program measured."""
        if library == "java":
            classpath = f"{self.java / 'classes'}:{self.java / 'dependency'}/*"
            program = [*JAVA, "-cp", classpath, MAIN_CLASSES[work]]
        else:
            program = [sys.executable, "-m", f"benchmarks.groups.programs.{library}_{work}"]
        command = [*program, peer.bootstrap, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode:
            raise RuntimeError(f"{library}, {work}, with {peer.name}:\n{done.stdout}{done.stderr}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


def produce(peer: Peer, topic: str, records: int, partition: int) -> None:
    """So many records to one partition."""
    producer = Producer(
        {"bootstrap.servers": peer.bootstrap, "linger.ms": 10, "queue.buffering.max.messages": 10**7, "log_level": 4}
    )
    value = bytes(SIZE)
    for _ in range(records):
        producer.produce(topic, value, partition=partition)
    if left := producer.flush(TIMEOUT):
        raise RuntimeError(f"{left} records of {records} weren't produced")


def configure(peer: Peer, group: str, **configs: str) -> None:
    """Set configurations of a group."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 4})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, help=f"{FULL.rounds} by default")
    parser.add_argument("--quick", action="store_true", help="a few members and records, one round: for CI")
    options = parser.parse_args()
    need(MAVEN)
    scale = QUICK if options.quick else FULL
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C does: the servers are ended
    console = Console(width=None if Console().is_terminal else 140)
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        benchmark = Benchmark(Path(directory), scale)
        try:
            with console.status("") as status:
                benchmark.run(options.only, lambda text: status.update(text))
        finally:
            benchmark.stop()
        found = {
            measure: medians
            for measure in measures(scale.members, scale.partitions * memory.PER_PARTITION)
            if (medians := benchmark.medians(measure.key)) is not None
        }
    manner = "with short heartbeats" if scale.settings else "both with their defaults"
    console.print(table(found, f"Groups: Kohort beside Apache Kafka, {manner}"))


if __name__ == "__main__":
    main()
