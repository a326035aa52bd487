"""One simulated run: chaos for a while, then calm, in which every group has to converge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode
from tests.simulation.books import InvariantError
from tests.simulation.streams.application import Application, changed, draw
from tests.simulation.streams.convergence import check_convergence, why_not_converged
from tests.simulation.streams.member import Habits, Member
from tests.simulation.streams.process import Process
from tests.simulation.streams.world import Faults, Solver, State, StreamsWorld

EXPECTED = frozenset(
    {
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


@dataclass(frozen=True)
class Scale:
    """How much happens.

    Attributes:
        groups: number of groups.
        processes: number of processes a group, at most.
        threads: members a process, at most.
        partitions: partitions of a topic, at most.
        chaos_ms: how long things go wrong.
        pause_ms: mean time between two mishaps.
        thorough: every how many steps live and replayed state are compared.
        full: whether groups have as many processes and members as they may from the beginning.
    """

    groups: int
    processes: int
    threads: int
    partitions: int
    chaos_ms: int
    pause_ms: int
    thorough: int = 1
    full: bool = False


SMALL = Scale(groups=2, processes=4, threads=3, partitions=6, chaos_ms=360_000, pause_ms=7_500)
LARGE = Scale(
    groups=10, processes=50, threads=4, partitions=100, chaos_ms=30_000, pause_ms=3_000, thorough=101, full=True
)
SIZES = {
    "small": SMALL,
    "medium": replace(LARGE, groups=2, pause_ms=15_000),  # each group of it is as large as in the large one
    "large": LARGE,
}


class Scenario:
    """Chaos, then calm; all of it follows from the seed."""

    def __init__(self, seed: int, scale: Scale) -> None:
        self.rng = rng = Random(seed)
        self.scale = scale
        solver = Solver(elsewhere=1 if scale.full else rng.choice([0, 0, 0.5, 1]))
        self.world = world = StreamsWorld(rng, faults=Faults(), solver=solver)
        world.thorough = scale.thorough
        world.state = State(restored=rng.choice([5_000, 20_000, 100_000]))
        world.fatal = self._fatal
        self.processes: dict[str, list[Process]] = {}
        self._calm = False
        self._names = 0
        self._kinds = {
            "crash": 5,
            "stop": 4,
            "start": 6,
            "freeze": 4,
            "roll": 1,
            "grow": 1.5,
            "topology": 1,
            "configure": 1,
            "delete": 0.5,
            "restart": 1,
            "append": rng.choice([0, 0, 1, 3]),
            "shut down": 0.3,
            "remove": 1,
        }
        for number in range(scale.groups):
            group_id = f"app{number}"
            world.settings[group_id] = self._settings()
            application = draw(group_id, rng)
            application.prepare(world.topics, rng, scale.partitions)
            self.processes[group_id] = []
            for _ in range(scale.processes if scale.full else rng.randint(1, scale.processes)):
                process = self._process(application)
                world.after(rng.choice([0, rng.randrange(20_000)]), process.start)

    def _settings(self) -> StreamsSettings:
        rng = self.rng
        return StreamsSettings(
            session_timeout_ms=rng.choice([20_000, 45_000]),
            heartbeat_interval_ms=5_000 if self.scale.full else rng.choice([3_000, 5_000]),
            num_standby_replicas=rng.choice([0, 0, 1, 1, 2]),
            num_warmup_replicas=rng.choice([0, 1, 2, 2, 5]),
            acceptable_recovery_lag=rng.choice([0, 1_000, 10_000]),
            task_offset_interval_ms=60_000 if self.scale.full else rng.choice([15_000, 60_000]),
            assignment_interval_ms=rng.choice([0, 0, 1_000, 4_000]),
            initial_rebalance_delay_ms=rng.choice([0, 500, 3_000]),
            max_size=2**31 - 1 if self.scale.full or rng.random() < 0.9 else 5,
            assignor_name="optimal" if rng.random() < 0.6 else "sticky",
            rack_aware_assignment_tags=("zone",) if rng.random() < 0.3 else (),
        )

    def _process(self, application: Application) -> Process:
        rng = self.rng
        self._names += 1
        name = f"p{self._names}"
        tags = {"zone": rng.choice("abc")} if rng.random() < 0.5 else {}
        static, reports, knows_ends = rng.random() < 0.3, rng.random() < 0.8, rng.random() < 0.7
        endpoint = ("10.0.0.1", 1_000 + self._names) if rng.random() < 0.4 else None
        habits = [
            Habits(
                thread=number,
                instance_id=f"{name}-{number}" if static else None,
                rebalance_ms=rng.choice([8_000, 30_000]),
                revoke_ms=rng.choice([100, 2_000, 2_000, 12_000]),
                reports=reports,
                knows_ends=knows_ends,
                endpoint=endpoint,
            )
            for number in range(self.scale.threads if self.scale.full else rng.randint(1, self.scale.threads))
        ]
        process = Process(self.world, name, application, habits, tags)
        self.processes[application.group_id].append(process)
        return process

    def _fatal(self, member: Member, code: ErrorCode, message: str | None) -> None:
        """A member got an error that it can't go on from; it is started again a little later."""
        process = member.process
        if code not in EXPECTED and not (code is ErrorCode.INVALID_REQUEST and member.shutting_down):
            raise InvariantError(f"{member} got {code.name}: {message}")
        if member in process.members:
            process.members.remove(member)
            if code is not ErrorCode.FENCED_INSTANCE_ID:
                self.world.after(10_000, process.start)

    # Chaos ------------------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        if self._calm:
            return
        rng = self.rng
        self.world.after(rng.randrange(2 * self.scale.pause_ms), self._mishap)
        group_id = rng.choice(list(self.processes))
        processes = self.processes[group_id]
        alive = [process for process in processes if process.members]
        (kind,) = rng.choices(list(self._kinds), list(self._kinds.values()))
        self.world.note("mishap", kind, group_id)
        self.world.counts[kind] += 1
        if kind == "restart":
            self.world.stop_coordinator(rng.random() < 0.5)
            self.world.after(rng.choice([0, rng.randrange(20_000)]), self.world.start_coordinator)
        elif kind == "append":
            self.world.append_error = rng.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
            self.world.after(rng.randrange(3_000), self._append_again)
        elif kind == "remove":
            empty = [name for name in self.processes if not self.world.checker.ledger.group(name).current]
            self.world.delete_group(rng.choice(empty or [group_id]))
        elif kind == "configure":
            self._configure(group_id)
        elif kind == "start" or not alive:
            stopped = [process for process in processes if not process.members]
            if stopped and (rng.random() < 0.7 or len(processes) >= 2 * self.scale.processes):
                rng.choice(stopped).start()
            elif len(processes) < 2 * self.scale.processes:
                self._process(processes[0].application).start()
        elif kind in ("grow", "delete"):
            self._change_topics(kind, processes[0].application)
        elif kind in ("roll", "topology"):
            self._roll(group_id, kind == "topology")
        else:
            self._afflict(kind, rng.choice(alive))

    def _afflict(self, kind: str, process: Process) -> None:
        rng, world = self.rng, self.world
        back_ms = rng.choice([500, rng.randrange(10_000), rng.randrange(100_000)])
        if kind == "crash":
            process.crash(wiped=rng.random() < 0.5)
            if rng.random() < 0.2:
                self._names += 1
                process.move(f"p{self._names}")
            if rng.random() < 0.8:
                world.after(back_ms, process.start)
        elif kind == "stop":
            if rng.random() < 0.7:
                process.stop()
            else:
                process.leave()
            if rng.random() < 0.7:
                world.after(back_ms, process.start)
        elif kind == "freeze":
            process.freeze()
            world.after(rng.randrange(90_000), process.thaw)
        else:
            rng.choice(process.members).shutting_down = True
            for other in self.processes[process.application.group_id]:
                world.after(rng.randrange(100_000, 200_000), other.start)

    def _roll(self, group_id: str, new_topology: bool) -> None:
        """Restart one process after the other, perhaps with a new version of the application."""
        rng = self.rng
        processes = self.processes[group_id]
        application = processes[0].application
        if new_topology:
            application = changed(application, rng)
            application.prepare(self.world.topics, rng, self.scale.partitions)
        pause_ms = rng.choice([0, 5_000, 30_000])
        for number, process in enumerate(processes):
            if process.members or new_topology:
                self.world.after(number * pause_ms, partial(self._restart, process, application))

    def _restart(self, process: Process, application: Application) -> None:
        if process.members:
            process.stop()
            self.world.after(self.rng.randrange(5_000), process.start)
        if application.epoch > process.application.epoch:
            process.application = application

    def _change_topics(self, kind: str, application: Application) -> None:
        rng, topics = self.rng, self.world.topics
        part = rng.choice(application.parts)
        sources = application.topics(part)
        if not sources:
            return
        if kind == "delete":
            topic = rng.choice(sources)
            partitions = topics.partitions(topic)
            if partitions is None:
                return
            topics.delete(topic)
            self.world.topics_changed([topic])
            self.world.after(rng.randrange(20_000), partial(self._again, topic, partitions))
        else:
            more = rng.randint(1, 3)
            for topic in sources:
                if (partitions := topics.partitions(topic)) is not None:
                    topics.create(topic, partitions + more)
            self.world.topics_changed(sources)
            if rng.random() < 0.8:  # somebody grows the changelogs too, which nobody else does
                self.world.after(rng.randrange(20_000), lambda: self._heal(application))

    def _again(self, topic: str, partitions: int) -> None:
        self.world.topics.create(topic, partitions)
        self.world.topics_changed([topic])

    def _heal(self, application: Application) -> None:
        if names := application.heal(self.world.topics):
            self.world.topics_changed(names)

    def _configure(self, group_id: str) -> None:
        rng = self.rng
        settings = self.world.settings[group_id]
        self.world.settings[group_id] = rng.choice(
            [
                replace(settings, num_standby_replicas=rng.choice([0, 1, 2])),
                replace(settings, num_warmup_replicas=rng.choice([0, 1, 2])),
                replace(settings, acceptable_recovery_lag=rng.choice([0, 1_000, 10_000])),
            ]
        )
        self.world.perform(self.world.shard.streams.settings_changed(group_id))

    def _append_again(self) -> None:
        self.world.append_error = None

    # Calm -------------------------------------------------------------------------------------------------------

    def run(self) -> StreamsWorld:
        """Run it, and raise `InvariantError` if anything was wrong."""
        world = self.world
        world.after(0, self._mishap)
        world.run(self.scale.chaos_ms)
        self._calm = True
        world.faults = None
        world.append_error = None
        world.solver.failing = 0
        world.start_coordinator()
        world.note("calm")
        for group_id, processes in self.processes.items():
            newest = max((process.application for process in processes), key=lambda application: application.epoch)
            self._heal(newest)
            for process in processes:
                process.thaw()
                process.habits = [replace(habits, revoke_ms=200) for habits in process.habits]
                for member in process.members:
                    member.habits = process.habits[member.habits.thread]
            for process in processes:
                if process.members and process.application.epoch < newest.epoch:
                    self._restart(process, newest)
            world.note("newest", group_id, newest.epoch)
        self._wait()
        check_convergence(world, self.processes)
        world.stop_coordinator(gracefully=True)
        world.start_coordinator()
        return world

    def _wait(self) -> None:
        """Give the groups time: sessions and revocations may have to expire, and state has to be restored."""
        world, deadline = self.world, self.world.now + 1_500_000
        world.run(60_000)
        quiet, epochs = 0, [0]
        while quiet < 6:  # longer than a session
            world.run(10_000)
            restless = why_not_converged(world, self.processes)
            before, epochs = epochs, [group.epoch for group in world.checker.ledger.groups.values()]
            quiet = 0 if restless or epochs != before else quiet + 1
            if restless and world.now > deadline:
                raise InvariantError(f"at {world.elapsed}, left alone for long: {restless}")


def simulate(seed: int, scale: Scale) -> Counter[str]:
    """Run one seed; counts of what happened.

    Raises:
        InvariantError: with the last events, and how to repeat the run.
    """
    scenario = Scenario(seed, scale)
    try:
        world = scenario.run()
    except Exception as error:
        size = next(name for name, known in SIZES.items() if known == scale)
        events = "\n".join(" ".join(map(str, event)) for event in scenario.world.trace)
        command = f"python -m tests.simulation --kind streams --first {seed} --seeds 1 --size {size}"
        raise InvariantError(f"seed {seed}: {error}\nthe last events:\n{events}\nrepeat with: {command}") from error
    return world.counts + Counter(seeds=1, groups=scale.groups)
