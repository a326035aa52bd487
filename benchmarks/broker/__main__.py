"""Kohort's server beside Apache Kafka's: both run, under the same load in turn, and a table says who was quicker.

    make bench-broker
    python -m benchmarks.broker --quick
    python -m benchmarks.broker --profile

Both have their own defaults (Kafka's JVM flags are those of its start script), but for
`group.initial.rebalance.delay.ms=0`, and what one Kafka node needs to be alone. Figures are medians of rounds, after
one that warms up.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import results
from benchmarks.broker import librdkafka, peers
from benchmarks.broker.librdkafka import Load
from benchmarks.broker.measures import ALL, table
from benchmarks.broker.peers import Peer
from benchmarks.broker.process import resident_mebibytes, run_on
from benchmarks.broker.profiler import Profiler, Watch, no_profiler
from tests.tools import KCAT, MAVEN, need

SERVER_CORE, GENERATOR_CORE = 0, 1


@dataclass(frozen=True)
class Scale:
    """How much: records of 100 bytes and of 1 KiB, records for the latency, seconds of heartbeats, rounds, starts."""

    small: int
    large: int
    one_by_one: int
    seconds: float
    members: int
    rounds: int
    starts: int


FULL = Scale(small=2_000_000, large=500_000, one_by_one=3000, seconds=4.0, members=200, rounds=3, starts=3)
QUICK = Scale(small=20_000, large=5_000, one_by_one=50, seconds=0.2, members=50, rounds=1, starts=1)


class Benchmark:
    """The two servers, the loads, and what has been measured: by measure and peer, a list of figures."""

    def __init__(self, directory: Path, scale: Scale, profiler: Watch) -> None:
        self.scale = scale
        self.directory = directory
        self.peers = [peers.kohort(directory), peers.kafka(directory)]
        self.loads: dict[str, Load] = {}
        self.found: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.profiler = profiler
        self.names = (f"benchmark-{number}" for number in itertools.count())

    def run(self, say: Callable[[str], None]) -> None:
        """Start both, and do it all in rounds."""
        for number in range(self.scale.starts):
            for make in (peers.kohort, peers.kafka):
                fresh = make(self.directory / f"start-{number}")
                say(f"start {number + 1} of {self.scale.starts}: {fresh.name}")
                self.note(fresh, "ready", fresh.start())
                fresh.stop()
        self.loads = {  # not before: a start waits for a disk that is busy
            "100 B": Load.make(self.scale.small, 100, self.directory),
            "1 KiB": Load.make(self.scale.large, 1024, self.directory),
        }
        os.sync()
        for peer in self.peers:
            say(f"starting {peer.name}")
            peer.start()
        time.sleep(2)  # what a server still does once it answers
        for peer in self.peers:
            self.note(peer, "idle", resident_mebibytes(peer.pid))
        for number in range(1 + self.scale.rounds):
            if number == 1:
                self.forget_loads()  # the first round warms up
            for load in (self.records, self.one_by_one, self.heartbeats, self.joins):
                for peer in self.peers:
                    say(f"round {number} of {self.scale.rounds}: {load.__name__} with {peer.name}")
                    with self.profiler(peer, load.__name__):
                        load(peer)
        for peer in self.peers:
            self.note(peer, "loaded", resident_mebibytes(peer.pid))

    def stop(self) -> None:
        """End both servers."""
        for peer in self.peers:
            peer.stop()

    def note(self, peer: Peer, measure: str, figure: float) -> None:
        """Keep a figure of this round."""
        self.found[measure, peer.name].append(figure)

    def forget_loads(self) -> None:
        """Drop the figures of the loads so far."""
        for measure, peer in list(self.found):
            if measure not in ("ready", "idle"):
                del self.found[measure, peer]

    def median(self, peer: Peer, measure: str) -> float:
        """The median over the rounds."""
        return statistics.median(self.found[measure, peer.name])

    def records(self, peer: Peer) -> None:
        """Produce and consume, in each size."""
        for size, load in self.loads.items():
            topic = next(self.names)
            librdkafka.create_topic(peer, topic)
            for work in (librdkafka.produce, librdkafka.consume):
                flow = work(peer, topic, load)
                self.note(peer, f"{work.__name__} {size} MB/s", flow.megabytes)
                self.note(peer, f"{work.__name__} {size} records/s", flow.records)
                self.note(peer, f"{work.__name__} {size} client", flow.client)
                self.note(peer, f"{work.__name__} {size} server", flow.server)

    def one_by_one(self, peer: Peer) -> None:
        """The latency of a record."""
        topic = next(self.names)
        librdkafka.create_topic(peer, topic, partitions=1)
        p50, p99 = librdkafka.latency(peer, topic, self.scale.one_by_one)
        self.note(peer, "p50", p50)
        self.note(peer, "p99", p99)

    def heartbeats(self, peer: Peer) -> None:
        """Heartbeats with the server on one core, and the generator on the other."""
        cores = os.sched_getaffinity(peer.pid)
        run_on(peer.pid, {SERVER_CORE})
        try:
            for name, depth in (("one", 1), ("pipelined", 32)):
                found = group_traffic("heartbeats", peer, peer.pid, depth, self.scale.seconds)
                self.note(peer, f"heartbeats {name}", found["rate"])
                self.note(peer, f"heartbeats {name} per core", found["rate"] / found["server"])
                self.note(peer, f"heartbeats {name} client", found["generator"])
                self.note(peer, f"heartbeats {name} server", found["server"])
        finally:
            run_on(peer.pid, cores)

    def joins(self, peer: Peer) -> None:
        """Many members join a group at once."""
        found = group_traffic("joins", peer, self.scale.members)
        self.note(peer, "joins", found["seconds"])
        self.note(peer, "generations", found["generations"])


def group_traffic(what: str, peer: Peer, *numbers: float) -> dict[str, float]:
    """What the generator of group traffic measured, on its own core."""
    address = [peer.server.host, str(peer.server.port), str(GENERATOR_CORE)]
    command = [sys.executable, "-m", "benchmarks.broker.groups", what, *address, *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{what} with {peer.name}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the load, one round: for CI")
    parser.add_argument("--profile", action="store_true", help="show where Kohort's time goes (needs py-spy)")
    results.add_option(parser)
    options = parser.parse_args()
    need(KCAT, MAVEN)
    console = Console(width=None if Console().is_terminal else 140)
    profiler = Profiler() if options.profile else None
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        benchmark = Benchmark(Path(directory), QUICK if options.quick else FULL, profiler or no_profiler)
        try:
            with console.status("") as status:
                benchmark.run(lambda text: status.update(text))
            figures = {
                measure: tuple(benchmark.median(peer, measure.key) for peer in benchmark.peers) for measure in ALL
            }
        finally:
            benchmark.stop()
    names = [peer.name for peer in benchmark.peers]
    found = {measure.key: dict(zip(names, those, strict=True)) for measure, those in figures.items()}
    results.save(options.json, {"figures": found})
    console.print(table(figures))
    if profiler:
        for profile in profiler.tables():
            console.print(profile)


if __name__ == "__main__":
    main()
