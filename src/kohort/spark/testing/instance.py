"""An instance that has all tasks of an application, on topics in memory.

What decides and what computes are the application's own: task manager, epochs, Spark jobs, stores. Only the group, the
brokers' fetches and their transactions are left out. Chains go on one after the other, so that a test has the same
outputs in the same order in each run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import EpochDone, Listener
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.chain_epochs import ChainEpochs
from kohort.spark.runtime.chain_runner import ChainRunner, Jobs
from kohort.spark.runtime.clock_timers import due_timers
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs, ForTask
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.epoch_planning import lag
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.global_tables import GLOBALS, GlobalTables
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.plain_errors import plain
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskEffect
from kohort.spark.state import StateDirectory, Store
from kohort.spark.testing.committer import MemoryCommitter
from kohort.spark.testing.topics import MemoryTopics
from kohort.streams.tasks import Role, TaskId

_ALL: Final = LimitSettings(first_records=2**31, most_records=2**31, most_bytes=2**62)
"""An epoch reads all there is, however much that is."""


class MemoryInstance:
    """Runs an application until there is nothing left to read. `start`, `settle` and `close` run in one event loop.

    Args:
        tasks: all of the application's.
        make_jobs: as of `Instance`.
        clock: the time, in ms since 1970.

    Attributes:
        late: rows that came after their window was closed.
        dropped: records that were left out, by reason.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        tasks: Iterable[TaskId],
        topics: MemoryTopics,
        directory: StateDirectory,
        make_jobs: Callable[[str], Jobs],
        clock: Callable[[], int],
    ) -> None:
        self.stores = OpenStores(plan, directory)
        self.late = 0
        self.dropped: Counter[str] = Counter()
        self._plan, self._topics, self._tasks = plan, topics, tuple(tasks)
        self._manager = TaskManager(plan.subtopologies, plan.fingerprint, _ALL)
        self._globals: GlobalTables | None = None
        self._make_jobs, self._clock = make_jobs, clock
        self._runners: dict[str, ChainRunner] = {}
        self._effects: dict[str, deque[ForEpochs]] = {}
        self._looks = 0

    async def start(self) -> None:
        """Take all tasks on, with empty stores."""
        plan, manager = self._plan, self._manager
        for epochs in manager.chains:
            chain = epochs.chain
            self._effects[chain.id] = deque()
            self._runners[chain.id] = ChainRunner(chain, self._make_jobs, MemoryCommitter(self._topics), self.stores.of)
        if plan.globals:
            self._globals = GlobalTables(
                plan.globals, lambda: self._make_jobs(GLOBALS), self.stores, self._topics, self._topics,
                _Counting(self), lambda reason: None,
            )  # fmt: skip
        for effect in manager.assigned(dict.fromkeys(self._tasks, Role.ACTIVE)):
            assert isinstance(effect, ForTask) and effect.effect is TaskEffect.RESTORE
            await self.stores.open(effect.task)
            positions = {each: 0 for each in plan.inputs(effect.task) if self._topics.ends([each])}
            self._take(manager.restored(effect.task, effect.operation, positions, None))

    async def settle(self) -> None:
        """Read all there is, and what comes of it, until nothing is left.

        Raises:
            ApplicationError: a record can't be read where the application stops at that, or a job failed.
        """
        going_on = True
        while going_on:
            going_on = await self._catch_up()
            for epochs in self._manager.chains:
                await self._run(epochs)
                inputs = epochs.chain.partitions(epochs.tasks)
                going_on |= lag(epochs.positions(), self._topics.ends(inputs)) > 0

    async def close(self) -> None:
        """End its threads."""
        for runner in self._runners.values():
            await runner.close()
        if self._globals is not None:
            await self._globals.close()

    async def _catch_up(self) -> bool:
        """Read global tables; whether there was anything."""
        if self._globals is None:
            return False
        try:
            return await self._globals.catch_up()
        except ApplicationError:
            raise
        except Exception as error:
            raise ApplicationError(f"a global table can't be read: {plain(error)}") from error

    async def _run(self, epochs: ChainEpochs) -> None:
        """Run a chain's epochs until it pauses."""
        name = epochs.chain.id
        if epochs.state is EpochState.PAUSED:
            self._take(self._manager.epoch_happened(name, epochs.operation, EpochEvent.DUE))
        effects = self._effects[name]
        while effects:
            effect = effects.popleft()
            if effect.effect is EpochEffect.REPORT:
                assert effect.epoch is not None
                self._count(effect.epoch)
            elif effect.operation == epochs.operation:  # else something else was begun instead
                self._take(await self._done(epochs, effect))

    async def _done(self, epochs: ChainEpochs, effect: ForEpochs) -> Iterable[Effect]:
        """Do this; what is to be done next."""
        chain, manager, runner = effect.chain, self._manager, self._runners[effect.chain]
        match effect.effect:
            case EpochEffect.LOOK:
                return self._look(epochs, effect)
            case EpochEffect.JOB:
                assert effect.epoch is not None
                try:
                    output = await runner.run_job(effect.epoch)
                except ApplicationError:
                    raise
                except Exception as error:
                    where = effect.epoch.plan.subtopology
                    raise ApplicationError(f"an epoch of subtopology {where} failed: {plain(error)}") from error
                return manager.job_done(chain, effect.operation, output.statistics)
            case EpochEffect.SEND:
                assert effect.epoch is not None
                await runner.send(effect.epoch)
                return manager.epoch_happened(chain, effect.operation, EpochEvent.SENT)
            case EpochEffect.COMMIT:
                await runner.commit()
                return manager.epoch_happened(chain, effect.operation, EpochEvent.COMMITTED)
            case EpochEffect.STORE:
                await runner.store()
                return manager.stored(chain, effect.operation, 0.0)
        return ()  # a pause

    def _look(self, epochs: ChainEpochs, effect: ForEpochs) -> list[Effect]:
        """Where the inputs end. All that is written is decided. A look takes a second, of a clock that only counts."""
        chain, topics = epochs.chain, self._topics
        ends = topics.ends(chain.partitions(epochs.running))
        epochs.ends_read(ends, float(self._looks))
        partitions = {name: topics.partitions(name) for name in chain.repartitioned | chain.placed}
        self._looks += 1
        written = topics.ends(epochs.unsettled)
        due = due_timers(chain.subtopologies, epochs.running, self.stores.of, self._clock())
        now = float(self._looks)
        return self._manager.looked(effect.chain, effect.operation, ends, written, partitions, now, due)

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ForEpochs):
                self._effects[effect.chain].append(effect)

    def _count(self, epoch: Epoch) -> None:
        assert epoch.statistics is not None
        self.late += epoch.statistics.late
        self.dropped.update(epoch.statistics.reasons)

    def stores_of(self, name: str) -> list[Store]:
        """A store's partitions, or a global table's store."""
        partitions = sorted({task.partition for task in self._tasks})
        found = (self.stores.get(name, partition) for partition in (None, *partitions))
        return [each for each in found if each is not None]


class _Counting(Listener):
    """Counts what loading global tables leaves out."""

    def __init__(self, instance: MemoryInstance) -> None:
        self._instance = instance

    def epoch(self, done: EpochDone) -> None:
        self._instance.dropped.update(done.reasons)
