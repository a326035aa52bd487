"""One simulated run: instances come and go while everything goes wrong, then calm, in which all has to be counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from kohort.client.types import TopicPartition
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.spark.runtime.task_states import TaskState
from kohort.streams.tasks import Role
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import KINDS, application
from tests.simulation.runtime.cluster import Cluster
from tests.simulation.runtime.faults import NONE, Faults
from tests.simulation.runtime.logs import Record
from tests.simulation.runtime.process import Process

CHAOS_MS = 32_000
PAUSE_MS = 2_500
WRITE_MS = 1_500
CALM_MS = 90_000
"""So long it may take to come to rest: sessions and transactions expire, epochs that failed are tried again."""
TIMER_MS = 8_000
KEYS = "abcdefg"

MISHAPS = {
    "crash": 4, "torn": 2, "wiped": 1, "stop": 3, "start": 6, "freeze": 6, "unheard": 4,
    "roll": 1, "restart": 1.5, "configure": 1,
}  # fmt: skip


class Scenario:
    """All of it follows from the seed."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Faults | None = None,
        processes: int | None = None,
        kinds: Sequence[str] = KINDS,
    ) -> None:
        self.rng = rng = Random(seed)
        settings = StreamsSettings(
            session_timeout_ms=7_000,
            heartbeat_interval_ms=2_000,
            num_standby_replicas=rng.choice([0, 1, 1]),
            num_warmup_replicas=rng.choice([0, 2]),
            acceptable_recovery_lag=rng.choice([0, 10]),
            task_offset_interval_ms=3_000,
            initial_rebalance_delay_ms=rng.choice([0, 500]),
            assignor_name=rng.choice(["sticky", "sticky", "optimal"]),
        )
        self.application = application(rng.choice(kinds), rng.choice([2, 3, 4]))
        self.cluster = Cluster(rng, self.application, settings, NONE if faults is None else faults.drawn(rng))
        self.mishaps = {kind: weight * rng.choice((0, 1, 2)) for kind, weight in MISHAPS.items()} | {"start": 2}
        self.returning = rng.choice((0.05, 0.5))  # how often a process that is away comes back before something happens
        self.chaos = faults is not None
        self.calm = False
        self.processes = [self._process(number) for number in range(processes or rng.choice([2, 3, 3]))]
        for number, process in enumerate(self.processes):
            self.cluster.clock.after(rng.randrange(5_000) if number else 0, process.start)

    def _process(self, number: int) -> Process:
        rng = self.rng
        static = f"static-{number}" if rng.random() < 0.2 else None
        return Process(self.cluster, f"p{number}", static, rng.choice([6_000, 60_000]))

    # Chaos ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Somebody writes to the sources."""
        if self.calm:
            return
        rng, cluster = self.rng, self.cluster
        for _ in range(rng.randrange(8)):
            topic = rng.choice(self.application.sources)
            log = cluster.logs[TopicPartition(topic, rng.randrange(self.application.partitions))]
            key, value = rng.choice(KEYS), 1 + rng.randrange(3)
            if self.application.kind == "timers":
                value = cluster.clock.now + rng.randrange(TIMER_MS)
            log.append(Record(key, value, 10 * log.end + rng.randrange(50)))
        cluster.clock.after(rng.randrange(WRITE_MS), self._write)

    def _mishap(self) -> None:
        if self.calm:
            return
        rng, cluster = self.rng, self.cluster
        after = cluster.clock.after
        after(rng.randrange(2 * PAUSE_MS), self._mishap)
        (kind,) = rng.choices(list(self.mishaps), list(self.mishaps.values()))
        alive = [process for process in self.processes if process.instance is not None]
        away = [process for process in self.processes if process.instance is None]
        if away and rng.random() < self.returning:
            kind = "start"
        back_ms = rng.choice([50, rng.randrange(3_000), rng.randrange(25_000)])
        cluster.counts[kind] += 1
        cluster.note("mishap", kind)
        if kind == "restart":
            cluster.coordinator.stop()
            after(rng.choice([100, rng.randrange(6_000)]), cluster.coordinator.start)
        elif kind == "configure":
            settings = cluster.coordinator.settings
            cluster.coordinator.configure(replace(settings, num_standby_replicas=rng.choice([0, 1])))
        elif kind == "start" or not alive:
            if away:
                rng.choice(away).start()
            elif len(self.processes) < 4:
                self.processes.append(self._process(len(self.processes)))
                self.processes[-1].start()
        elif kind == "roll":
            for number, process in enumerate(alive):
                after(number * 4_000, process.stop)
                after(number * 4_000 + 2_000 + rng.randrange(8_000), process.start)
        elif kind == "stop":
            process = rng.choice(alive)
            process.stop()
            after(1_000 + back_ms, process.start)
        elif kind == "freeze":
            process = rng.choice(alive)
            process.freeze()
            after(rng.choice([500, 6_000, 9_000, rng.randrange(20_000)]), process.thaw)
        elif kind == "unheard":
            rng.choice(alive).unheard_until = cluster.clock.now + rng.choice([4_000, rng.randrange(8_000, 14_000)])
        else:
            process = rng.choice(alive)
            process.crash(torn=kind == "torn", wiped=kind == "wiped")
            if rng.random() < 2 * self.returning:
                after(back_ms, process.start)

    # Calm -------------------------------------------------------------------------------------------------------

    def run(self) -> Cluster:
        """Run it, and raise `InvariantError` if anything was wrong."""
        cluster = self.cluster
        cluster.clock.after(0, self._write)
        if self.chaos:
            cluster.clock.after(3_000, self._mishap)
        cluster.run(CHAOS_MS)
        self.calm = True
        cluster.faults = NONE
        cluster.note("calm")
        cluster.coordinator.start()
        for process in self.processes:
            process.thaw()
            process.unheard_until = 0
        self._rest()
        cluster.oracle.check_totals()
        return cluster

    def _rest(self) -> None:
        """Wait until all is counted, and every task runs. Who is away comes back, at once or when it isn't needed."""
        alone_ms = self.rng.choice((0, 0, 16_000))
        began = self.cluster.clock.now
        quiet = 0
        while quiet < 2:
            self.cluster.run(1_000)
            if self.cluster.clock.now - began >= alone_ms or not any(each.instance for each in self.processes):
                for process in self.processes:
                    process.start()
            unrest = self._unrest()
            quiet = 0 if unrest else quiet + 1
            if unrest and self.cluster.clock.now - began > CALM_MS:
                raise InvariantError(f"comes to rest: left alone for long: {unrest}")
        self.cluster.counts["rest ms"] += self.cluster.clock.now - began

    def _unrest(self) -> str | None:
        """Why it isn't at rest."""
        if unread := self.cluster.oracle.unread():
            return f"unread: {unread}"
        if waiting := self.cluster.oracle.waiting():
            return f"{waiting} timers haven't gone off"
        running: Counter[object] = Counter()
        for process in self.processes:
            instance = process.instance
            if instance is None or instance.failure is not None:
                return f"{process.process_id} isn't there"
            for task in instance.manager.tasks.values():
                if task.wanted is Role.ACTIVE and task.state is TaskState.RUNNING:
                    running[task.id] += 1
                elif task.state is not TaskState.FOLLOWING:
                    return f"{instance}: {task}"
            if reason := instance.manager.reason:
                return f"{instance}: {reason}"
        if running != Counter(self.application.tasks):
            return f"only these run: {running}"
        return None


def simulate(seed: int, faults: Faults | None = None, kinds: Sequence[str] = KINDS) -> Counter[str]:
    """Run one seed of an application of one of these kinds; counts of what happened.

    Raises:
        InvariantError: with the last events, and how to repeat the run.
    """
    scenario = Scenario(seed, faults=faults or Faults(), kinds=kinds)
    try:
        cluster = scenario.run()
    except Exception as error:
        raise failure(seed, scenario, error) from error
    counts = Counter(seeds=1, commits=cluster.oracle.commits, merged=cluster.oracle.merged)
    return cluster.counts + counts + Counter([scenario.application.kind])


def failure(seed: int, scenario: Scenario, error: Exception) -> InvariantError:
    """What went wrong, the last events, and how to repeat the run."""
    cluster = scenario.cluster
    kind = "programs" if scenario.application.program is not None else "runtime"
    events = "\n".join(" ".join(map(str, event)) for event in cluster.trace)
    command = f"python -m tests.simulation --kind {kind} --first {seed} --seeds 1"
    what = f"{type(error).__name__}: {error}" if not isinstance(error, InvariantError) else str(error)
    return InvariantError(
        f"seed {seed}, at {cluster.clock.elapsed}: {what}\nthe last events:\n{events}\nrepeat with: {command}"
    )
