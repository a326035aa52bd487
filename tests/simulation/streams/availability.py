"""How long stateful tasks stand still while an application is restarted or scaled out, with and without copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from kohort.coordinator.streams.settings import StreamsSettings
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.streams.application import Application, Part
from tests.simulation.streams.convergence import why_not_converged
from tests.simulation.streams.member import Habits
from tests.simulation.streams.process import Process
from tests.simulation.streams.world import State, StreamsWorld

GROUP = "app"
THREADS = 2
WINDOW_MS = 1_800_000
DOWN_MS = 30_000  # that a process is away when it is restarted
PAUSE_MS = 60_000  # from a restart to that of the next process
STATE = State(records=1_000_000, rate=100, restored=20_000)


@dataclass(frozen=True)
class Outcome:
    """What became of the stateful tasks.

    Attributes:
        change: what was done.
        standbys, warmups: how the group is configured.
        available: share of the time that tasks ran, 0 to 1.
        worst_ms: the longest that one stood still.
        restored: records that were restored, for tasks, standbys and warm-ups.
        moved: times that a task went from one member to another.
        converged_ms: how long it took until nothing changed any more.
    """

    change: str
    standbys: int
    warmups: int
    available: float
    worst_ms: int
    restored: int
    moved: int
    converged_ms: int


class Meter:
    """Counts how long each stateful task stands still."""

    def __init__(self, world: StreamsWorld, tasks: list[TaskId]) -> None:
        self._world = world
        self._began = world.now
        self._idle_since = {task: world.now for task in tasks if not world.runners(GROUP, task)}
        self._tasks = tasks
        self.idle_ms = self.worst_ms = 0
        world.on_run = self._runs

    def _runs(self, group_id: str, task: TaskId, runners: int) -> None:
        now = self._world.now
        if task not in self._tasks:
            return
        if not runners:
            self._idle_since[task] = now
        elif (since := self._idle_since.pop(task, None)) is not None:
            self.idle_ms += now - since
            self.worst_ms = max(self.worst_ms, now - since)

    def available(self) -> float:
        """Share of the time until now that tasks ran."""
        for task in list(self._idle_since):
            self._runs(GROUP, task, 1)
            self._idle_since[task] = self._world.now
        return 1 - self.idle_ms / (len(self._tasks) * (self._world.now - self._began))


class Experiment:
    """An application on some processes, at rest; then something is done to it.

    Args:
        settings: the group's.
        processes: how many it begins with.
    """

    def __init__(self, settings: StreamsSettings, processes: int) -> None:
        self.world = StreamsWorld(Random(1))
        self.world.state = STATE
        self.world.settings[GROUP] = settings
        self.application = Application(GROUP, 0, (Part("0", stores=1), Part("1", sources=2, stores=2), Part("2")))
        for part in self.application.parts:
            for topic in self.application.topics(part):
                self.world.topics.create(topic, 16)
        self.processes: list[Process] = []
        for _ in range(processes):
            self.add()
        self.converge()
        self.world.run(2 * settings.task_offset_interval_ms)  # everybody has told how far its copies are

    def add(self) -> None:
        """Start another process."""
        habits = [Habits(thread=thread, revoke_ms=1_000) for thread in range(THREADS)]
        process = Process(self.world, f"p{len(self.processes)}", self.application, habits, {})
        self.processes.append(process)
        process.start()

    def converge(self) -> int:
        """Wait until nothing changes any more; how long that took, in ms."""
        began = self.world.now
        while restless := why_not_converged(self.world, {GROUP: self.processes}):
            self.world.run(1_000)
            if self.world.now > began + 4 * WINDOW_MS:
                raise InvariantError(f"not converged after {self.world.now - began} ms: {restless}")
        return self.world.now - began

    def measure(self, change: Callable[[Experiment], None]) -> Outcome:
        """Do something, and watch the tasks for a while."""
        world, settings = self.world, self.world.settings[GROUP]
        stateful = {part.id for part in self.application.parts if part.stores}
        tasks = [task for task in self.application.tasks(world.topics) if task.subtopology in stateful]
        restored, moved, began = self._restored(), world.checker.moves[GROUP], world.now
        meter = Meter(world, tasks)
        change(self)
        self.converge()
        converged = world.now - began
        world.run(max(0, began + WINDOW_MS - world.now))
        return Outcome(
            change.__name__.replace("_", " "),
            settings.num_standby_replicas,
            settings.num_warmup_replicas,
            meter.available(),
            meter.worst_ms,
            self._restored() - restored,
            world.checker.moves[GROUP] - moved,
            converged,
        )

    def _restored(self) -> int:
        copies = [copy for process in self.processes for copy in process.disk.values() if copy.holder is not None]
        return self.world.restored() + sum(copy.restored(self.world.now) for copy in copies)


def rolling_restart(experiment: Experiment) -> None:
    """Restart one process after the other, each after the one before it is back."""
    for process in experiment.processes:
        process.stop()
        experiment.world.run(DOWN_MS)
        process.start()
        experiment.world.run(PAUSE_MS)


def scale_out(experiment: Experiment) -> None:
    """Start as many processes again as there are."""
    for _ in range(len(experiment.processes)):
        experiment.add()


def outcome_of(change: Callable[[Experiment], None], standbys: int, warmups: int) -> Outcome:
    """What a change comes to with so many standbys and warm-ups."""
    settings = StreamsSettings(num_standby_replicas=standbys, num_warmup_replicas=warmups)
    return Experiment(settings, 3).measure(change)


def report() -> Iterator[str]:
    """A table of it all, line by line."""
    yield "change           standbys  warm-ups  available  longest outage  restored records  moves  converged after"
    for change, standbys, warmups in itertools.product((rolling_restart, scale_out), (0, 1), (0, 2, 8)):
        outcome = outcome_of(change, standbys, warmups)
        yield (
            f"{outcome.change:<15}  {standbys:>8}  {warmups:>8}  {outcome.available:>9.3%}"
            f"  {outcome.worst_ms / 1_000:>12.1f} s  {outcome.restored:>16,}  {outcome.moved:>5}"
            f"  {outcome.converged_ms / 1_000:>13.0f} s"
        )
