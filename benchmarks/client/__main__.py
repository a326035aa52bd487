"""Kohort's client beside confluent-kafka and aiokafka, on the same broker, in the same run.

    make bench-client
    python -m benchmarks.client --broker kafka --records 100000 --rounds 1 --only consume consume_batch

Each piece of work runs in a process of its own, the libraries in turns; they do it once in small before the clock runs.
All have acks=all, linger 5 ms, no compression; topics have 4 partitions. Figures are medians of rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import results
from benchmarks.broker import librdkafka, peers
from benchmarks.broker.peers import Peer
from benchmarks.client.clients import confluent
from benchmarks.client.clients.face import Clock
from benchmarks.client.figures import AIOKAFKA, CONFLUENT, KOHORT, SIZES, TITLES, WORKS, Figures
from benchmarks.client.worker import values
from tests.tools import MAVEN, need

LIBRARIES = (KOHORT, CONFLUENT, AIOKAFKA)
BROKERS = {"kohort": peers.kohort, "kafka": peers.kafka}
WARM_UP = 20_000
"""Records that a process produces or consumes before it is measured."""

MEMBERS, FEW_MEMBERS = 50, 5
"""Those of the group that idles, and in small."""
STARTS = 5
OTHERS = ("first_record", "idle")


class Benchmark:
    """A broker, and what the libraries did with it."""

    def __init__(self, peer: Peer, records: int, warm_up: int, rounds: int, idle_seconds: float, members: int) -> None:
        self.peer = peer
        self.warm_up = warm_up
        self.members = members
        self.numbers = {100: records, 1024: records // 2}
        self.rounds = rounds
        self.idle_seconds = idle_seconds
        self.figures = Figures(members)
        self._names = (f"benchmark-{number}" for number in itertools.count())

    def run(self, works: Iterable[str], libraries: Sequence[str], say: Callable[[str], None]) -> None:
        """All rounds of all works; the libraries take turns."""
        wanted = list(works)
        say(f"{self.peer.name}: writing what is to be read")
        self._filled = {size: self._fill(number, size) for size, number in self.numbers.items()}
        self._warm_up = {size: self._fill(self.warm_up, size) for size in SIZES}
        for work in wanted:
            rounds = {"first_record": STARTS if self.rounds > 1 else 1, "idle": 1}.get(work, self.rounds)
            for number in range(rounds):
                for library in libraries:
                    say(f"{self.peer.name}: {work}, round {number + 1} of {rounds}: {TITLES[library]}")
                    getattr(self, work if work in OTHERS else "load")(library, work)

    def load(self, library: str, work: str) -> None:
        """Produce or consume, in both sizes."""
        for size in SIZES:
            number = self.numbers[size]
            told = {"size": size, "number": number, "warm_up_number": self.warm_up, "warm_up": self._warm_up[size]}
            if work.startswith("produce"):
                told |= {"topic": self._topic(), "warm_up": self._topic()}
            else:
                told |= {"topic": self._filled[size]}
            found = self._work(library, work, **told)
            self.figures.note(f"{work} {size}", library, number / found["seconds"])
            self.figures.note(f"{work} {size} cpu", library, found["cpu"] / number * 1e6)

    def first_record(self, library: str, work: str) -> None:
        """A fresh process reads a topic as the first member of a new group."""
        found = self._work(library, work, topic=self._filled[100], group=next(self._names))
        self.figures.note(work, library, found["seconds"])
        self.figures.note(f"{work} process", library, found["process"])

    def idle(self, library: str, work: str) -> None:
        """Members that have nothing to do."""
        topic = self._topic(self.members)
        told = {"topic": topic, "group": topic, "members": self.members, "seconds": self.idle_seconds}
        found = self._work(library, work, **told)
        self.figures.note(work, library, found["cpu"] / found["seconds"] * 100)

    def _work(self, library: str, what: str, **told: Any) -> dict[str, float]:
        command = [
            sys.executable,
            "-m",
            "benchmarks.client.worker",
            library,
            what,
            self.peer.bootstrap,
            json.dumps(told),
        ]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        taken = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{TITLES[library]}, {what}, with {self.peer.name}:\n{done.stderr}")
        return {**json.loads(done.stdout.splitlines()[-1]), "process": taken}

    def _topic(self, partitions: int = librdkafka.PARTITIONS) -> str:
        topic = next(self._names)
        librdkafka.create_topic(self.peer, topic, partitions)
        return topic

    def _fill(self, number: int, size: int) -> str:
        topic = self._topic()
        confluent.produce_batch(self.peer.bootstrap, topic, values(number, size), Clock())
        return topic


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.client", description=__doc__.partition("\n")[0])
    parser.add_argument("--broker", choices=[*BROKERS, "both"], help="both, unless there is no Maven")
    parser.add_argument("--records", type=int, default=300_000, help="of 100 bytes; half as many of 1 KiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*WORKS, *OTHERS], default=[*WORKS, *OTHERS], metavar="WORK")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES, metavar="LIBRARY")
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument(
        "--quick", action="store_true", help="a hundredth of the records, one round, 1 s of few that idle: for CI"
    )
    results.add_option(parser)
    options = parser.parse_args()
    warm_up, members = WARM_UP, MEMBERS
    if options.quick:
        options.records, options.rounds, options.idle_seconds = options.records // 100, 1, 1.0
        warm_up, members = WARM_UP // 10, FEW_MEMBERS
    console = Console(width=None if Console().is_terminal else 140)
    chosen = options.broker or "both"
    if chosen == "kafka":
        need(MAVEN)
    elif chosen == "both" and not MAVEN.is_there():
        console.print(f"Without Apache Kafka: {MAVEN.missing}.", soft_wrap=True)
        chosen = "kohort"
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        for name in BROKERS if chosen == "both" else [chosen]:
            peer = BROKERS[name](Path(directory) / name)
            try:
                with console.status("") as status:
                    status.update(f"starting {peer.name}")
                    peer.start()
                    benchmark = Benchmark(peer, options.records, warm_up, options.rounds, options.idle_seconds, members)
                    benchmark.run(options.only, options.libraries, status.update)
            finally:
                peer.stop()
            title = f"Clients with {peer.name} as the broker (medians)"
            console.print(benchmark.figures.table(title, options.libraries))
            found |= {f"{measure}, {peer.name}": those for measure, those in benchmark.figures.medians().items()}
            results.save(options.json, {"figures": found})


if __name__ == "__main__":
    main()
