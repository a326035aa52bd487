"""An instance: Kohort's member and task manager, and an interpreter that does what they decide in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.client.backoff import Backoff
from kohort.client.streams.events import Assigned, Event, Lost, Revoked, RolesChanged
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State as MemberState
from kohort.spark.runtime.effects import Effect
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskState
from kohort.spark.state import StateError
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import GROUP
from tests.simulation.runtime.checker import Checker
from tests.simulation.runtime.clock import Answer, Cancelled, Steps
from tests.simulation.runtime.coordinator import HEARTBEAT_VERSION
from tests.simulation.runtime.interpreter import Interpreter
from tests.simulation.runtime.stores import Store
from tests.simulation.runtime.work import Work

if TYPE_CHECKING:
    from tests.simulation.runtime.process import Process

LEAVE_WITHIN_MS = 5_000
STOP_WITHIN_MS = 30_000
TICK_MS = 1_000
_LIMITS = LimitSettings(first_records=8, most_records=30)
_FROM_CHANGELOGS = frozenset({TaskState.FOLLOWING, TaskState.RESTORING})


class Instance:
    """One life of a process.

    Attributes:
        member, manager: the real ones.
        heard: answers of the coordinator so far.
        closing: whether it does nothing more but let go.
        failure: why it stops, if it can't go on.
    """

    def __init__(self, process: Process) -> None:
        self.process, self.cluster, self.disk = process, process.cluster, process.disk
        self.application = self.cluster.application
        self.name = f"{process.process_id}.{process.lives}"
        settings = MemberSettings(
            group_id=GROUP,
            topology=self.application.plan.topology,
            member_id=self.name,
            process_id=process.process_id,
            instance_id=process.instance_id,
            rebalance_timeout_ms=process.rebalance_timeout_ms,
        )
        self.member = StreamsMembershipManager(
            settings, Backoff(100, 1_000, self.cluster.rng), leave_within_ms=LEAVE_WITHIN_MS
        )
        self.manager = TaskManager(self.application.plan.subtopologies, self.application.plan.fingerprint, _LIMITS)
        self.interpreter = Interpreter(self)
        self.checker = Checker(self)
        self.heard = 0
        self.alive = True
        self.closing = False
        self.failure: str | None = None
        self._due = 0
        self._turn_is_due = False
        self.work(self.interpreter.end_own(), lambda work: self._join())

    def __repr__(self) -> str:
        return self.name

    # What goes on in it -------------------------------------------------------------------------------------------

    def when_awake(self, action: Callable[[], object]) -> None:
        """Do something as soon as the process isn't frozen; never, if it is gone."""
        self.process.when_awake(lambda: action() if self.alive else None)

    def soon(self, action: Callable[[], object]) -> None:
        """Do something in a moment."""
        self.cluster.clock.after(0, lambda: self.when_awake(action))

    def work(self, steps: Steps, over: Callable[[Work], object], risk: int = 1) -> Work:
        """Begin to do something; it is so much more likely than usual to crash meanwhile."""
        return Work(self, steps, over, risk)

    def crashes(self, risk: int) -> bool:
        """Whether the process dies at this very step."""
        if self.cluster.rng.random() >= risk * self.cluster.faults.crash:
            return False
        self.cluster.counts["crashed at a step"] += 1
        self.process.crash()
        return True

    def decide(self, cause: object, call: Callable[[], list[Effect]]) -> None:
        """Have the task manager decide, and do what it wants done."""
        before = self.checker.before()
        effects = call()
        self.checker.decided(cause, before, effects)
        self.interpreter.do(effects)
        self.checker.idle_for_a_reason()
        self.poke()

    def fail(self, why: str) -> None:
        """It can't go on: it leaves."""
        self.checker.stops(why)
        self.cluster.counts["failed"] += 1
        self.cluster.note(self, "stops:", why)
        self.failure = self.failure or why
        self.stop()

    def takes(self) -> int:
        """How long something with a store takes, in ms."""
        return self.cluster.rng.randrange(self.process.slow_ms)

    # The group ----------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        self.member.begin(self.cluster.clock.now)
        self.cluster.clock.after(TICK_MS, self._tick)
        self.poke()

    def poke(self) -> None:
        """There may be something to hear, or to say."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self.soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        member, clock = self.member, self.cluster.clock
        while (event := member.next_event(clock.now)) is not None:
            self._hear(event)
        if member.ended:
            self._end()
            return
        due = member.due_at
        if due is None:
            return
        if due <= clock.now:
            self._heartbeat()
        elif due != self._due:
            self._due = due
            clock.after(due - clock.now, lambda: self.when_awake(self.poke))

    def _hear(self, event: Event) -> None:
        manager = self.manager
        what = type(event).__name__
        self.cluster.note(self, what, *map(str, getattr(event, "tasks", ())))
        self.cluster.counts[what] += 1
        match event:
            case Assigned(tasks):
                self.decide(event, lambda: manager.assigned(tasks))
            case Revoked(tasks):
                self.decide(event, lambda: manager.revoked(tasks))
            case Lost(tasks):
                self.decide(event, lambda: manager.lost())
            case RolesChanged(roles):
                self.decide(event, lambda: manager.roles_changed(roles))

    def _heartbeat(self) -> None:
        self._report()
        request = self.member.request(self.cluster.clock.now, HEARTBEAT_VERSION)
        self.cluster.counts["heartbeats"] += 1
        coordinator = self.cluster.coordinator
        if self.cluster.clock.now < self.process.unheard_until:
            answer = self.cluster.unanswered("heartbeat")
        else:
            answer = self.cluster.send(f"heartbeat {self}", lambda: coordinator.heartbeat(request), self.name)
        answer.then(lambda: self.when_awake(lambda: self._answered(answer)))

    def _answered(self, answer: Answer) -> None:
        now = self.cluster.clock.now
        if answer.error is not None:
            self.member.on_failure(now)
        else:
            before = self.member.state
            self.member.on_response(answer.value, now)
            if self.member.state is MemberState.FAILED and before is not MemberState.FAILED:
                self.cluster.note(self, "failed", self.member.error)
        self.heard += 1
        self.poke()

    def acknowledge(self, task: TaskId) -> None:
        """Tell the member that a task is given up."""
        try:
            self.member.closed([task], self.cluster.clock.now)
        except ValueError as error:
            raise InvariantError(f"acknowledged in vain: {self}: {error}") from error
        self.checker.acknowledged(task)
        self.poke()

    # Copies -------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.alive:
            self.when_awake(self._read_on)
            self.cluster.clock.after(TICK_MS, self._tick)

    def _read_on(self) -> None:
        """Standbys and warm-ups follow; the group is told how far they are."""
        for task_id, task in self.manager.tasks.items():
            if task.state is TaskState.FOLLOWING:
                for name, store in self.disk.open[task_id].items():
                    changelog = self.application.changelog(task_id, name)
                    self.interpreter.activation.read_on(changelog, store, self.cluster.logs[changelog].stable)
        self._report()
        self.poke()

    def _report(self) -> None:
        offsets, ends = {}, {}
        for task_id, stores in self.disk.stores.items():
            task = self.manager.tasks.get(task_id)
            if stores and (task is None or task.state in _FROM_CHANGELOGS):
                offsets[task_id] = sum(store.position or 0 for store in stores.values())
                changelogs = [self.application.changelog(task_id, name) for name in stores]
                ends[task_id] = sum(self.cluster.logs[changelog].end for changelog in changelogs)
        self.member.offsets.update(offsets, ends)

    def open_stores(self, task: TaskId) -> Steps:
        """A task's stores; they are opened, unless they are. Raises StateError. Opening isn't interrupted."""
        if task not in self.disk.open:
            ms, fails = self.takes(), self.cluster.rng.random() < self.cluster.faults.open
            try:
                yield ms
            except Cancelled:
                yield ms
                raise
            if fails:
                self.cluster.counts["open failed"] += 1
                raise StateError("the disk can't be read")
            self.disk.take(task, list(self.application.plan.changelogs(task)))
        stores: dict[str, Store] = self.disk.open[task]
        return stores

    # Its end ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Give up the tasks, then leave; at once if that takes too long."""
        self.member.stop(self.cluster.clock.now)
        self.poke()
        self.cluster.clock.after(STOP_WITHIN_MS, lambda: self.when_awake(self._abandon))

    def _abandon(self) -> None:
        if not self.member.ended and not self.closing:
            self.cluster.counts["abandoned"] += 1
            self._close()
            self.member.quit(self.cluster.clock.now)
            self.poke()

    def _close(self) -> None:
        self.closing = True
        self.interpreter.close()

    def _end(self) -> None:
        """It has left the group, or failed."""
        if not self.closing:
            self._close()
        self.cluster.clock.after(LEAVE_WITHIN_MS, lambda: self.when_awake(lambda: self.process.ended(self)))
