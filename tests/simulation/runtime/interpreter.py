"""Does effects in virtual time, as `runtime.interpreter` does: each is work, whose outcome becomes an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.runtime.clock_timers import DueTimers
from kohort.spark.runtime.commit_errors import while_committing, while_sending
from kohort.spark.runtime.effects import Effect, ForEpochs, ForTask
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent
from kohort.spark.runtime.task_states import TaskEffect, TaskEvent
from kohort.spark.state import StateError
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.activation import Activation, transactional_id
from tests.simulation.runtime.clock import JobError, Steps
from tests.simulation.runtime.jobs import Made, run_job
from tests.simulation.runtime.producer import Committer, Producer
from tests.simulation.runtime.work import Work

if TYPE_CHECKING:
    from tests.simulation.runtime.instance import Instance

Key: TypeAlias = TaskId | str
Outcome: TypeAlias = Callable[[Work], list[Effect]]

POLL_MS = 500
JOB_MS = 500
_REPLACEABLE = frozenset({TaskEffect.WAIT, EpochEffect.GATHER, EpochEffect.PAUSE})
"""Pauses: what comes after them may come earlier."""
_RISKY = frozenset({EpochEffect.SEND, EpochEffect.COMMIT, EpochEffect.STORE})


class Interpreter:
    """Does the effects of an instance.

    Attributes:
        under_way: effects, by task or chain, with the work that they are.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance, self._cluster, self._manager = instance, instance.cluster, instance.manager
        self._rng = self._cluster.rng
        self.activation = Activation(instance)
        self._committers: dict[str, Committer] = {}
        self._made: dict[str, Made] = {}
        self._positions: dict[str, dict[TopicPartition, int]] = {}
        self.under_way: dict[Key, tuple[Effect, Work]] = {}

    def do(self, effects: Iterable[Effect]) -> None:
        """Begin to do these."""
        for effect in effects:
            self._cluster.note(self._instance, shown(effect))
            self._cluster.counts[effect.effect.name] += 1
            if isinstance(effect, ForTask):
                self._for_task(effect)
            else:
                self._for_epochs(effect)

    def end_own(self) -> Steps:
        """End what this process left open when it ran last, before it joins."""
        transactions, prefix = self._cluster.transactions, transactional_id(self._instance.process.process_id, "")
        try:
            for name in (yield from self._cluster.insist("list transactions", transactions.open_ones)):
                if name.startswith(prefix):
                    yield from self._cluster.insist(f"fence {name}", lambda name=name: transactions.start(name))
        except (KafkaError, ClientError):
            return

    def close(self) -> None:
        """Abort what is under way, and close the producers."""
        for _, work in list(self.under_way.values()):
            work.cancel()
        for committer in self._committers.values():
            self._instance.work(committer.close(patient=True), lambda work: None)

    def _start(self, key: Key, effect: Effect, steps: Steps, outcome: Outcome, *, instead: bool = False) -> None:
        if key in self.under_way:
            before, work = self.under_way[key]
            if not instead and before.effect not in _REPLACEABLE:
                raise InvariantError(
                    f"one at a time: {self._instance} begins {shown(effect)}, and {shown(before)} is under way"
                )
            work.cancel()

        def over(work: Work) -> None:
            if self.under_way.get(key, (None, None))[1] is work:
                del self.under_way[key]
            if not self._instance.closing:
                self._instance.decide(effect, lambda: outcome(work))

        self.under_way[key] = effect, self._instance.work(steps, over, 20 if effect.effect in _RISKY else 1)

    # Tasks ------------------------------------------------------------------------------------------------------

    def _for_task(self, effect: ForTask) -> None:
        task, operation, manager = effect.task, effect.operation, self._manager
        match effect.effect:
            case TaskEffect.RESTORE:
                steps = self.activation.activate(task, self.committer(manager.epochs[task.subtopology].chain.id).open)
                self._start(
                    task, effect, steps, self._done(effect, lambda value: manager.restored(task, operation, *value))
                )
            case TaskEffect.FOLLOW:
                self._start(
                    task,
                    effect,
                    self._follow(task),
                    self._done(effect, lambda value: manager.task_happened(task, operation, TaskEvent.OPENED)),
                )
            case TaskEffect.CANCEL:
                if task not in self.under_way:
                    raise InvariantError(f"{self._instance} cancels what isn't under way: {shown(effect)}")
                self.under_way[task][1].cancel()
            case TaskEffect.WAIT:
                self._start(
                    task,
                    effect,
                    _pause(effect.seconds),
                    lambda work: manager.task_happened(task, operation, TaskEvent.DUE),
                )
            case TaskEffect.CLOSE:
                self._start(
                    task,
                    effect,
                    self._close(task),
                    lambda work: manager.stores_closed(task, operation, work.value),
                )
            case TaskEffect.ACKNOWLEDGE:
                self._instance.acknowledge(task)

    def _done(self, effect: ForTask, then: Callable[[Any], list[Effect]]) -> Outcome:
        """What came of an effect that may fail, or be cancelled."""

        def over(work: Work) -> list[Effect]:
            if work.error is None:
                return then(work.value)
            if not work.cancelled and not isinstance(work.error, KafkaError | ClientError | StateError):
                raise work.error
            event, why = (TaskEvent.CANCELLED, None) if work.cancelled else (TaskEvent.FAILED, str(work.error))
            return self._manager.task_happened(effect.task, effect.operation, event, why)

        return over

    def _follow(self, task: TaskId) -> Steps:
        stores = yield from self._instance.open_stores(task)
        for store in stores.values():
            store.writer = "changelog"

    def _close(self, task: TaskId) -> Steps:
        yield self._instance.takes()
        position = self._instance.disk.release(task)
        yield self._instance.takes() // 2
        return position

    # Epochs -----------------------------------------------------------------------------------------------------

    def committer(self, chain: str) -> Committer:
        """Sends and commits a chain's epochs."""
        if chain not in self._committers:
            name = transactional_id(self._instance.process.process_id, chain)
            self._committers[chain] = Committer(lambda: Producer(self._cluster, name), self._instance.member)
        return self._committers[chain]

    def _for_epochs(self, effect: ForEpochs) -> None:
        name, operation, manager = effect.chain, effect.operation, self._manager
        committer = self.committer(name)

        def then(event: EpochEvent, failed: Callable[[Exception], EpochEvent]) -> Outcome:
            def over(work: Work) -> list[Effect]:
                if work.cancelled:
                    return []
                if work.error is None:
                    return manager.epoch_happened(name, operation, event)
                return manager.epoch_happened(name, operation, failed(work.error), str(work.error))

            return over

        match effect.effect:
            case EpochEffect.GATHER | EpochEffect.BACK_OFF:
                self._start(name, effect, _pause(effect.seconds), then(self._after_pause(effect), _bug))
            case EpochEffect.PAUSE:
                pause = _pause(effect.seconds) if effect.seconds else self._until_next_look()
                self._start(name, effect, pause, then(EpochEvent.DUE, _bug))
            case EpochEffect.LOOK:
                self._start(name, effect, self._look(name), lambda work: self._looked(effect, work))
            case EpochEffect.JOB:
                self._start(name, effect, self._job(effect), lambda work: self._job_done(effect, work))
            case EpochEffect.SEND:
                self._start(name, effect, self._send(effect), then(EpochEvent.SENT, while_sending))
            case EpochEffect.COMMIT:
                steps = committer.commit(self._made[name])
                self._start(name, effect, steps, lambda work: self._committed(effect, work))
            case EpochEffect.STORE:
                self._start(name, effect, self._store(effect), lambda work: self._stored(effect, work))
            case EpochEffect.SEND_LATER:
                self._start(name, effect, self._send_later(effect), then(EpochEvent.DUE, _bug))
            case EpochEffect.ABORT:
                before = self.under_way[name][1] if name in self.under_way else None
                steps = self._abort(committer, before)
                self._start(name, effect, steps, then(EpochEvent.ABORTED, _bug), instead=True)
            case EpochEffect.CLOSE_PRODUCER:
                self._start(name, effect, committer.close(patient=False), then(EpochEvent.CLOSED, _bug))
            case EpochEffect.REPORT:
                self._cluster.counts["epochs"] += 1
            case EpochEffect.STOP:
                self._instance.fail(effect.why)

    def _after_pause(self, effect: ForEpochs) -> EpochEvent:
        return EpochEvent.GATHERED if effect.effect is EpochEffect.GATHER else EpochEvent.DUE

    def _until_next_look(self) -> Steps:
        """All idle chains of an instance look at the same moment."""
        yield POLL_MS - self._cluster.clock.now % POLL_MS

    def _look(self, name: str) -> Steps:
        epochs = self._manager.epochs[name]
        partitions, unsettled = epochs.chain.partitions(epochs.running), epochs.unsettled
        ends = yield from self._cluster.ask("ends", lambda: self._cluster.ends(partitions))
        written = {}
        if unsettled:
            written = yield from self._cluster.ask("written", lambda: self._cluster.written(unsettled))
        return ends, written

    def _looked(self, effect: ForEpochs, work: Work) -> list[Effect]:
        if work.cancelled:
            return []
        name, operation, manager = effect.chain, effect.operation, self._manager
        if work.error is not None:
            return manager.epoch_happened(name, operation, EpochEvent.UNSEEN, str(work.error))
        partitions = dict.fromkeys(manager.epochs[name].chain.repartitioned, self._instance.application.partitions)
        now = self._cluster.clock.now
        return manager.looked(name, operation, *work.value, partitions, now / 1000, self._due(name, now))

    def _due(self, name: str, now: int) -> DueTimers:
        """The tasks with timers that the clock has reached."""
        epochs = self._manager.epochs[name]
        found = []
        for task in epochs.running:
            stores = self._instance.disk.open.get(task, {})
            clocks = epochs.chain.subtopologies[task.subtopology].clocks
            if any(min(stores[name].rows.values(), default=now + 1) <= now for name in clocks if name in stores):
                found.append(task)
        self._cluster.counts["called"] += len(found)
        return DueTimers(now, found)

    def _job(self, effect: ForEpochs) -> Steps:
        assert effect.epoch is not None
        yield self._rng.randrange(JOB_MS)
        made = run_job(self._instance.application, self._cluster.logs, self._instance.disk, effect.epoch)
        if self._rng.random() < self._cluster.faults.job:
            self._cluster.counts["job failed"] += 1
            raise JobError("an executor is gone")
        yield self._rng.randrange(20)
        return made

    def _job_done(self, effect: ForEpochs, work: Work) -> list[Effect]:
        if work.cancelled:
            return []
        name, operation, manager = effect.chain, effect.operation, self._manager
        if work.error is not None:
            return self._epoch_failed(effect, work)
        self._made[name] = work.value
        return manager.job_done(name, operation, work.value.statistics)

    def _send(self, effect: ForEpochs) -> Steps:
        assert effect.epoch is not None and effect.epoch.offsets is not None
        offsets = {at: (to.offset, to.metadata) for at, to in effect.epoch.offsets.items()}
        yield from self.committer(effect.chain).send(self._made[effect.chain], offsets)

    def _committed(self, effect: ForEpochs, work: Work) -> list[Effect]:
        if work.cancelled:
            return []
        name, operation, manager = effect.chain, effect.operation, self._manager
        if work.error is not None:
            return manager.epoch_happened(name, operation, while_committing(work.error), str(work.error))
        self._positions[name] = work.value
        return manager.epoch_happened(name, operation, EpochEvent.COMMITTED)

    def _store(self, effect: ForEpochs) -> Steps:
        """Write what is committed: store by store, and a failure between two leaves the others behind."""
        made, positions = self._made[effect.chain], self._positions[effect.chain]
        for changelog, rows in made.rows.items():
            yield self._instance.takes() // 2
            if self._rng.random() < self._cluster.faults.store:
                self._cluster.counts["store failed"] += 1
                raise StateError("the disk is full")
            task, name = made.stores[changelog]
            store = self._instance.disk.open[task][name]
            store.write("epoch", rows, positions[changelog])
            self._cluster.oracle.check_state(f"{self._instance} stores", changelog, positions[changelog], store.rows)
        yield 1

    def _stored(self, effect: ForEpochs, work: Work) -> list[Effect]:
        if work.cancelled:
            return []
        if work.error is not None:
            return self._epoch_failed(effect, work)
        assert effect.epoch is not None
        self._instance.checker.epoch_over(effect.epoch, failed=False)
        return self._manager.stored(effect.chain, effect.operation, 100.0)

    def _epoch_failed(self, effect: ForEpochs, work: Work) -> list[Effect]:
        assert effect.epoch is not None
        self._instance.checker.epoch_over(effect.epoch, failed=True)
        return self._manager.epoch_happened(effect.chain, effect.operation, EpochEvent.FAILED, str(work.error))

    def _send_later(self, effect: ForEpochs) -> Steps:
        yield from self.committer(effect.chain).abort()
        yield from _pause(effect.seconds)

    def _abort(self, committer: Committer, before: Work | None) -> Steps:
        if before is not None:
            before.cancel()
            while not before.over:
                yield 5
        yield self._rng.randrange(300)  # until the job hears that it is cancelled
        yield from committer.close(patient=True)


def shown(effect: Effect) -> str:
    """An effect, for whoever reads a failure."""
    name = f"{effect.effect.name} {effect.operation}"
    if isinstance(effect, ForTask):
        return f"{effect.task}: {name}"
    ranges = [] if effect.epoch is None else effect.epoch.plan.ranges
    return " ".join(
        [
            f"{effect.chain}: {name}",
            *(f"{each.topic}-{each.partition}:{each.start}-{each.end}" for each in ranges),
        ]
    )


def _pause(seconds: float) -> Steps:
    yield round(seconds * 1000)


def _bug(error: Exception) -> EpochEvent:
    """Pauses and closing don't fail."""
    raise error
