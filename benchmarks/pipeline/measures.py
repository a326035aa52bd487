"""What is measured of a contender: how fast it is, how soon a result is there, how long a kill is felt."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.pipeline import flights as data
from benchmarks.pipeline import tree
from benchmarks.pipeline.cases import Case, Flights
from benchmarks.pipeline.contenders import Contender, Job, environment
from benchmarks.pipeline.flights import Group
from benchmarks.pipeline.instances import Instance
from benchmarks.pipeline.results import Results
from benchmarks.pipeline.steady import CHUNK
from benchmarks.pipeline.watcher import Watcher
from kohort.spark.monitoring.events import EpochDone
from kohort.spark.monitoring.journal_analysis import read_journals
from kohort.testing import BrokerProcess

PARTITIONS = 4
SESSION_SECONDS = 6
"""After which a member that says nothing is taken for dead."""

BROKER_SETTINGS = {
    "group.streams.session.timeout.ms": SESSION_SECONDS * 1000,
    "group.streams.heartbeat.interval.ms": 1000,
    "group.streams.num.standby.replicas": 1,
    "num.partitions": PARTITIONS,
}
SETTLING = 45
"""Seconds of the steady rate before anything counts, by default: JVMs compile, caches fill."""

SMALL, LARGE = 1_000, 300_000
"""Flights of an epoch."""

WARM_UP, ROUNDS = 20, 30
"""How often the few flights are sent: before it counts, and then."""

BACKLOG, BACKLOGS = 6, 4
"""How many years of flights are sent at once, and how often. The first half is to warm up: the JVM compiles."""

READINGS = 3
"""How often a data source reads all records, after the first time."""

PATIENCE = 300
"""Seconds that nothing may come for, before it is given up: Structured Streaming takes all in its first batch."""


def middle(figures: list[float]) -> float:
    """Their median; not a number if there are none."""
    return statistics.median(figures) if figures else math.nan


def longest(times: np.ndarray) -> float:
    """The longest of some times; not a number if there are none."""
    return float(times.max()) if len(times) else math.nan


def each_second(number: float, seconds: float) -> float:
    """So many in a second; not a number if it took no time, as it may where two processes tell of its ends."""
    return number / seconds if seconds > 0 else math.nan


@dataclass(frozen=True)
class Throughput:
    """All records that are there, from the start of processing until the last result is committed.

    Attributes:
        records: how many.
        start_up, seconds: until processing began, and then until the end.
        cpu, broker_cpu: seconds of processor time, of the contender from the start of its processes, and of the broker.
        memory: the most, MiB.
        results: records written.
        differences: from the batch's.
        epochs: Kohort's, as it tells them.
        state: what its directory has on the disk in the end, MiB.
    """

    records: int
    start_up: float
    seconds: float
    cpu: float
    broker_cpu: float
    memory: float
    results: int
    differences: list[str]
    epochs: list[EpochDone] = field(default_factory=list)
    state: float = 0.0

    @property
    def rate(self) -> float:
        """Records a second."""
        return each_second(self.records, self.seconds)

    @property
    def brief(self) -> str:
        """In a line."""
        return f"{self.rate:,.0f} records/s"


@dataclass(frozen=True)
class Start:
    """Where some flights are there already; in s from the start of the process.

    Attributes:
        tasks: until processing began.
        first: until the first result was committed and read.
        cpu: processor time until then, of the contender and of all that it starts.
        phases: what an instance said that it had done, and when.
        differences: from the batch's.
    """

    tasks: float
    first: float
    cpu: float
    phases: dict[str, float]
    differences: list[str]

    @property
    def brief(self) -> str:
        """In a line."""
        return f"{self.tasks:.1f} s, the first result after {self.first:.1f} s"


@dataclass(frozen=True)
class Latency:
    """From a record's time stamp until its effect was committed and read, in s."""

    p50: float
    p99: float
    cpu_share: float
    """Cores that the contender was busy with."""
    differences: list[str]

    @property
    def brief(self) -> str:
        """In a line."""
        return f"{self.p50 * 1000:,.0f} ms (median), {self.p99 * 1000:,.0f} ms (99 %)"


@dataclass(frozen=True)
class Pause:
    """The longest that a record waited for its effect, in s: of those sent since the kill, and before it.

    Attributes:
        promotion: the longest that a copy took from its being given the task until it ran, in s, where that is told.
        median: of the waits before the kill, in s: of two instances, where one takes over from another.
    """

    longest: float
    before: float
    promotion: float | None
    differences: list[str]
    median: float = math.nan

    @property
    def brief(self) -> str:
        """In a line."""
        return f"{self.longest:.1f} s"


@dataclass(frozen=True)
class Epochs:
    """Kohort's epochs, as it tells them, of an application that is warm and has nothing else to do.

    Attributes:
        small: those of `SMALL` flights that were sent at once; what they come to is merged in them.
        large: those of `LARGE` flights and more, from a backlog, that began after all of it was written.
    """

    small: list[EpochDone]
    large: list[EpochDone]

    @property
    def rate(self) -> float:
        """Flights a second of the large ones, from their beginning to their end; the median."""
        return middle([epoch.records / epoch.took_ms * 1000 for epoch in self.large])

    @property
    def brief(self) -> str:
        """In a line."""
        small = middle([epoch.took_ms for epoch in self.small])
        return f"{small:,.0f} ms for {SMALL:,} flights, {self.rate:,.0f} flights/s in large ones"


@dataclass(frozen=True)
class Reading:
    """A topic read into a DataFrame, over and over.

    Attributes:
        records, bytes: what was read each time; bytes of values.
        first, seconds: what it took the first time, and then.
    """

    records: int
    bytes: int
    first: float
    seconds: list[float]

    @property
    def rate(self) -> float:
        """Records a second, the median."""
        return self.records / middle(self.seconds)

    @property
    def brief(self) -> str:
        """In a line."""
        return f"{self.rate:,.0f} records/s"


def large_epochs(told: Iterable[EpochDone], spans: Sequence[tuple[float, float]]) -> list[EpochDone]:
    """Those of `LARGE` flights and more that began and ended within one of `spans` (seconds since 1970)."""
    return [
        one for one in told if one.subtopology == "0" and one.records >= LARGE
        and any(start <= one.at - one.took_ms / 1000 and one.at <= end for start, end in spans)
    ]  # fmt: skip


class Bench:
    """A broker with topics, and what is needed to measure.

    Args:
        case: what contenders compute.
        directory: for state.
        records: how many, where all are there at once.
        rate, seconds: records a second, when steady, and for how long that is measured.
        settling: for how many seconds the steady rate goes on before.
        say: is told what goes on.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        case: Case[Any],
        directory: Path,
        *,
        records: int,
        rate: int,
        seconds: int,
        say: Callable[[str], None],
        settling: int = SETTLING,
    ) -> None:
        self.broker = broker
        self.case = case
        self.directory = directory
        self.records = records
        self.rate = rate
        self.seconds = seconds
        self.settling = settling
        self.say = say
        self._numbers = itertools.count()
        self._sent = directory / "sent"
        self._filled: dict[int, str] = {}

    def filled(self, records: int) -> str:
        """A topic with so many records."""
        if records not in self._filled:
            topic = self.topic(self.case.things)
            self.say(f"producing {records:,} {self.case.things}")
            self.case.fill(self.broker.bootstrap_servers, topic, records)
            self._filled[records] = topic
        return self._filled[records]

    def topic(self, name: str) -> str:
        """A new topic."""
        topic = f"{name}-{next(self._numbers)}"
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result()
        return topic

    def job(self, contender: Contender, source: str, standbys: int = 0) -> Job:
        """A new application."""
        application = f"{contender.name}-{next(self._numbers)}"
        return Job(
            servers=self.broker.bootstrap_servers,
            application=application,
            source=source,
            results=self.topic(f"{application}-results"),
            directory=str(self.directory / application),
            standbys=standbys,
            case=self.case.name,
        )

    @property
    def flights(self) -> pa.Table:
        """Those of that case, which has most of the measures."""
        assert isinstance(self.case, Flights)
        return self.case.table

    @cached_property
    def _file(self) -> Path:
        """Flights, as many as the process needs that sends them at a steady rate."""
        file = self.directory / "flights.arrow"
        with pa.ipc.new_file(str(file), self.flights.schema) as writer:
            writer.write_table(data.replayed(self.flights, self.rate * (self.settling + self.seconds)))
        return file

    def throughput(self, contender: Contender) -> Throughput:
        """One instance, all records at once."""
        records = int(self.records * contender.share)
        expected, wanted = self.case.batch(records)
        job = self.job(contender, self.filled(records))
        broker_before = tree.cpu_seconds([self.broker.pid])
        with (
            self.case.results(job.servers, job.results, PARTITIONS, records) as results,
            Instance(contender, job) as instance,
            tree.Watch(instance.pid) as watch,
        ):
            started = instance.started()
            self._until(results, wanted, [instance], f"{contender.title}: {records:,} records")
            taken = Throughput(
                records=records,
                start_up=started - instance.launched,
                seconds=results.arrived - started,
                cpu=watch.cpu(),
                broker_cpu=tree.cpu_seconds([self.broker.pid]) - broker_before,
                memory=watch.peak,
                results=results.records,
                differences=results.differences(expected),
                state=tree.disk_mebibytes(Path(job.directory)),
            )
        return replace(taken, epochs=[done for _, done in read_journals(job.directory).epochs()])

    def start(self, contender: Contender) -> Start:
        """One instance, a thousand flights."""
        expected = data.batch(self.flights, SMALL)
        job = self.job(contender, self.filled(SMALL))
        with (
            Results(job.servers, job.results, PARTITIONS) as results,
            Instance(contender, job) as instance,
            tree.Watch(instance.pid) as watch,
        ):
            self._until(results, 1, [instance], f"{contender.title} starts")
            first, cpu = min(arrivals[0][0] for arrivals in results.arrivals.values()), watch.cpu()
            wanted = sum(group.n for group in expected.values())
            self._until(results, wanted, [instance], f"{contender.title}: {SMALL:,} flights")
            return Start(
                tasks=instance.started() - instance.launched,
                first=first - instance.launched,
                cpu=cpu,
                phases={phase: at - instance.launched for phase, at in instance.phases.items()},
                differences=results.differences(expected),
            )

    def latency(self, contender: Contender) -> Latency:
        """One instance, a steady rate."""
        job = self.job(contender, self.topic("steady"))
        with Results(job.servers, job.results, PARTITIONS) as results, Instance(contender, job) as instance:
            self._wake(contender, instance)
            with tree.Watch(instance.pid) as watch:
                before = watch.cpu()
                load = self._load(job.source, self.settling + self.seconds)
                sent, differences = self._follow(
                    load, results, [instance], f"{contender.title}: {self.rate:,} records/s"
                )
                busy = (watch.cpu() - before) / (self.settling + self.seconds)
            moments, taken = results.latencies(sent)
            measured = taken[moments >= moments.min() + self.settling]
            p50, p99 = np.percentile(measured, [50, 99])
            return Latency(float(p50), float(p99), busy, differences)

    def pause(self, contender: Contender) -> Pause:
        """Two instances (or one that is restarted), a steady rate; one is killed."""
        job = self.job(contender, self.topic("steady"), standbys=1)
        with ExitStack() as stack:
            results = stack.enter_context(Results(job.servers, job.results, PARTITIONS))
            instances = []
            for number in range(2 if contender.takes_over else 1):
                own = Job(**{**vars(job), "directory": f"{job.directory}/{number}"})
                instances.append(stack.enter_context(Instance(contender, own)))
            for instance in instances:
                self._wake(contender, instance)
            load = self._load(job.source, self.settling + self.seconds)
            killed = 0.0

            def kill() -> None:
                nonlocal killed
                killed = time.time()
                instances[0].kill()
                if contender.takes_over:
                    instances.pop(0)
                else:
                    instances[0].start()

            title = f"{contender.title}: an instance is killed"
            sent, differences = self._follow(load, results, instances, title, (self.settling, kill))
            if not killed:
                raise RuntimeError(
                    f"its first result came so late that all was sent before {self.settling} s were over"
                )
            moments, taken = results.latencies(sent)
            settled = (moments >= moments.min() + self.settling / 2) & (moments + taken < killed)
            promotions = read_journals(*Path(job.directory).glob("*/*.jsonl")).promotions(since=killed)
            return Pause(
                longest=longest(taken[moments + taken >= killed]),
                before=longest(taken[settled]),
                promotion=max(promotions.values(), default=None),
                differences=differences,
                median=middle(list(taken[settled])),
            )

    def epochs(self, contender: Contender) -> Epochs:
        """One instance; a few flights at a time, then many."""
        job = self.job(contender, self.topic("epochs"))
        wanted = 0
        with Results(job.servers, job.results, PARTITIONS) as results, Instance(contender, job) as instance:
            self._wake(contender, instance)

            def send(flights: pa.Table, records: int) -> tuple[float, float]:
                """When all was written, and when the last result of it was there."""
                nonlocal wanted
                data.fill(job.servers, job.source, flights, records)
                filled = time.time()
                wanted += len(flights["delay"].drop_null()) * records // len(flights)
                self._until(results, wanted, [instance], f"{contender.title}: {records:,} flights at once")
                return filled, time.time()

            warm = few = 0.0
            for number in range(WARM_UP + ROUNDS):
                _, few = send(self.flights.slice(number * SMALL, SMALL), SMALL)
                warm = few if number < WARM_UP else warm
            backlogs = [send(self.flights, BACKLOG * len(self.flights)) for _ in range(BACKLOGS)]
        told = [one for _, one in read_journals(job.directory).epochs()]
        return Epochs(
            small=[one for one in told if warm < one.at <= few and one.records == SMALL],
            large=large_epochs(told, backlogs[BACKLOGS // 2 :]),
        )

    def reading(self, contender: Contender) -> Reading:
        """Its data source alone."""
        topic = self.filled(self.records)
        self.say(f"reading {self.records:,} records: {contender.source}")
        command = [
            sys.executable, "-m", "benchmarks.pipeline.reading", contender.source, self.broker.bootstrap_servers, topic,
            str(READINGS), contender.jars(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
        if done.returncode:
            raise RuntimeError(f"reading ended with code {done.returncode}:\n{done.stderr[-4000:]}")
        return Reading(**json.loads(done.stdout.splitlines()[-1]))

    def _wake(self, contender: Contender, instance: Instance) -> None:
        """Wait for an instance that has nothing to do yet, for as long as it says when it is ready."""
        if contender.tells_when_idle:
            self.say(f"{contender.title} starts")
            instance.started()

    def _load(self, topic: str, seconds: int) -> subprocess.Popen[bytes]:
        command = [
            sys.executable, "-m", "benchmarks.pipeline.steady", self.broker.bootstrap_servers, topic, str(self._file),
            str(self.rate), str(seconds),
        ]  # fmt: skip
        with self._sent.open("w") as sent:  # a pipe that is read in the end would be full long before
            return subprocess.Popen(command, stdout=sent)

    def _follow(
        self,
        load: subprocess.Popen[bytes],
        results: Results,
        instances: list[Instance],
        title: str,
        event: tuple[float, Callable[[], None]] | None = None,
    ) -> tuple[dict[Group, np.ndarray], list[str]]:
        """Read results until the load is over and all of it is told of.

        Returns:
            When flights were sent, by group; and where results differ from a batch's.

        Args:
            load: the process that sends.
            results, instances: what is read, and who writes it.
            title: what is said meanwhile.
            event: happens so many seconds after the first result.
        """
        first: float | None = None
        try:
            while load.poll() is None:
                results.poll(0.02)
                for instance in instances:
                    instance.check()
                if first is None and results.records:
                    first = time.monotonic()
                if event and first is not None and time.monotonic() > first + event[0]:
                    event[1]()
                    event = None
                self.say(f"{title}: {results.counted:,} flights")
            if load.returncode:
                raise RuntimeError(f"the load ended with code {load.returncode}")
            times = json.loads(self._sent.read_text())
        finally:
            load.kill()
            load.wait()
        records = len(times) * CHUNK
        expected = data.batch(self.flights, records)
        self._until(results, sum(group.n for group in expected.values()), instances, title)
        return _by_group(self.flights, times), results.differences(expected)

    def _until(self, results: Watcher[Any], wanted: int, instances: list[Instance], title: str) -> None:
        """Read results until they tell of so many flights."""
        deadline, before = time.monotonic() + PATIENCE, 0
        while results.counted < wanted:
            results.poll(0.1)
            for instance in instances:
                instance.check()
            if results.records != before:
                deadline, before = time.monotonic() + PATIENCE, results.records
            elif time.monotonic() > deadline:
                said = "\n".join(instance.complaints() for instance in instances)
                raise TimeoutError(f"{title}: nothing for {PATIENCE} s, at {results.counted:,} of {wanted:,}:\n{said}")
            self.say(f"{title}: {results.counted:,} of {wanted:,} flights")


def _by_group(flights: pa.Table, times: list[int]) -> dict[Group, np.ndarray]:
    """When the flights of each group were sent, in s since 1970."""
    sent = pa.array(np.repeat(np.array(times) / 1000, CHUNK))
    rows = data.replayed(flights.select(["origin", "hour", "delay"]), len(sent)).append_column("sent", sent)
    rows = rows.filter(pc.is_valid(rows["delay"]))
    groups = rows.group_by(["origin", "hour"], use_threads=False).aggregate([("sent", "list")])
    keys = zip(groups["origin"].to_pylist(), groups["hour"].to_pylist(), strict=True)
    return {key: np.array(times) for key, times in zip(keys, groups["sent_list"].to_pylist(), strict=True)}
