"""Group members in child processes, what they tell, and the rule that all of it has to keep."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from . import toolchains
from .java import jvm

PROGRAMS = Path(__file__).parent / "programs"
JAVA_OPTIONS = {
    "group": "group.id",
    "topic": "topic",
    "protocol": "group.protocol",
    "instance": "group.instance.id",
}


class MemberProcess:
    """A program, running: one of programs/, or `java …`, `go …` or `node …`, with a name that these have.

    Attributes:
        events: grows as it speaks.
        started, ended: when it was started, and told to leave or killed, ns.
    """

    def __init__(self, program: str, **options: Any) -> None:
        self.program = program
        self.events: list[dict[str, Any]] = []
        self.started = monotonic()
        self.ended: int | None = None
        self.process = subprocess.Popen(command(program, options), stdout=subprocess.PIPE)
        self.listener = threading.Thread(target=self._listen)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):  # the last line of one that was killed may be cut
                self.events.append(json.loads(line))

    def told(self, event: str) -> list[dict[str, Any]]:
        return [e for e in list(self.events) if e["event"] == event]

    @property
    def owns(self) -> list[int]:
        """The partitions it has, as far as it has said."""
        assert self.process.poll() is None, f"a member has exited with {self.process.returncode}"
        said = self.told("owns")
        return said[-1]["partitions"] if said else []

    def end(self, number: signal.Signals) -> None:
        """SIGTERM: it leaves; SIGKILL: it crashes."""
        self.ended = self.ended or monotonic()
        self.process.send_signal(number)  # nothing, where it has ended already
        self.process.wait(20)
        self.listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def leave(self) -> None:
        self.end(signal.SIGTERM)
        assert self.process.returncode == 0
        assert self.told("closed")


def command(program: str, options: dict[str, Any]) -> list[str]:
    """The command line of a member."""
    language, _, name = program.rpartition(" ")
    if language == "java":
        named = {JAVA_OPTIONS[key]: value for key, value in options.items() if key in JAVA_OPTIONS}
        arguments = jvm.scenario_arguments(name, options["bootstrap"], named)
        return jvm.command("clients", "kohort.interop.Interop", *arguments)
    if language == "go":
        return [str(toolchains.go_members()), name, json.dumps(options)]
    if language == "node":
        return [*toolchains.node_program("members"), json.dumps(options)]
    return [sys.executable, str(PROGRAMS / f"{program}.py"), json.dumps(options)]


class Members:
    """Those of one test; ended with it, in whatever way it ends."""

    def __init__(self) -> None:
        self.all: list[MemberProcess] = []

    def start(self, program: str, **options: Any) -> MemberProcess:
        self.all.append(MemberProcess(program, **options))
        return self.all[-1]

    def end(self) -> None:
        for member in self.all:
            member.kill()

    def committed(self) -> dict[int, int]:
        """The highest offset acknowledged in each partition."""
        found: dict[int, int] = defaultdict(int)
        for event in (e for m in self.all for e in m.told("committed")):
            for partition, offset in event["offsets"].items():
                found[int(partition)] = max(found[int(partition)], offset)
        return dict(found)

    def told_of(self, ends: dict[int, int]) -> str:
        """Who was where, for a failure: partitions that aren't at their ends, and what each member said last."""
        committed = self.committed()
        lines = []
        for partition, end in ends.items():
            if committed.get(partition) != end:
                reads = [(e["at"], n, e["offset"]) for n, m in enumerate(self.all) for e in m.told("read")
                         if e["partition"] == partition]  # fmt: skip
                _, member, offset = max(reads, default=(0, None, None))
                there = f"{committed.get(partition)} of {end} committed"
                lines.append(f"partition {partition}: {there}; last read: {offset}, by {member}")
        for number, each in enumerate(self.all):
            said = [event for event in list(each.events) if event["event"] != "read"][-4:]
            lines.append(f"member {number}, {each.program}, exit code {each.process.poll()}: {said}")
        return "\n".join(lines)


class Feeder:
    """Writes numbered records into all partitions in turn: a backlog, then one each every 20 ms, until it's stopped.

    The first of all partitions are written before any others are sent. Apache Kafka says that a topic is created before
    all of its leaders are ready: one that isn't may refuse a producer's first batch and take the second, since a broker
    lets a producer that it doesn't know begin with any sequence. librdkafka concludes from the second that the first
    is written, too, and so loses it.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, backlog: int = 1) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,  # brokers lock whole batches: a member that is killed has few in hand
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.topic, self.ends = topic, dict.fromkeys(range(partitions), 0)
        self.delivered = 0
        self.failures: list[object] = []
        for _ in range(backlog):
            self._write_one_each()
            if self.delivered == 0:
                assert self.producer.flush(60) == 0
        assert self.producer.flush(60) == 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping.wait(0.02):
            self._write_one_each()

    def _write_one_each(self) -> None:
        for partition, end in self.ends.items():
            self.producer.produce(self.topic, b"%d" % end, partition=partition, on_delivery=self._delivered)
            self.ends[partition] = end + 1
        self.producer.poll(0)

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failures.append(error)

    def stop(self) -> dict[int, int]:
        """The number of records, and so the end offset, of each partition."""
        self.stopping.set()
        self.thread.join()
        assert self.producer.flush(60) == 0
        assert not self.failures, self.failures[0]
        return self.ends


def assert_at_least_once(members: Sequence[MemberProcess], ends: dict[int, int]) -> None:
    """No record is lost, and none is read again once an acknowledged commit is past it.

    A record may well be read twice: by one that crashed, or lost its partition, before it had committed, and then
    by the heir. Nothing more is allowed by the protocol when members commit what they have processed.
    """
    events = sorted((e for m in members for e in m.events), key=lambda e: e["at"])
    committed: dict[int, int] = defaultdict(int)
    for event in events:
        if event["event"] == "committed":
            for partition, offset in event["offsets"].items():
                assert offset >= committed[int(partition)], f"a commit went back: {event}"
                committed[int(partition)] = offset
        elif event["event"] == "read":
            partition, offset = event["partition"], event["offset"]
            assert offset >= committed[partition], f"read again, after a commit of {committed[partition]}: {event}"
    assert dict(committed) == ends
    assert_all_read(members, ends)


def assert_all_read(members: Iterable[MemberProcess], ends: dict[int, int]) -> None:
    """No record is lost, and there are no others; for members that may read again what is committed."""
    found: dict[int, set[int]] = defaultdict(set)
    for event in (event for member in members for event in member.told("read")):
        found[event["partition"]].add(event["offset"])
    assert {p: len(found[p]) for p in ends} == ends
    assert {p: set(range(end)) for p, end in ends.items()} == found


def monotonic() -> int:
    """The clock of the events, ns."""
    return time.monotonic_ns()
