"""Does what the task manager wants done: restores, Spark jobs, transactions, stores; and tells it what came of that.

The only place where the decisions meet the world. At most one thing is under way for a task, and one for a
subtopology's epochs; each is an asyncio task here, whose outcome becomes an event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ApplicationError
from kohort.spark.jobs.epoch import EpochOutput
from kohort.spark.monitoring.events import EpochDone, Listener
from kohort.spark.runtime.activation import Activated
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.commit_errors import while_committing, while_sending
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs, ForTask
from kohort.spark.runtime.epoch_planning import lag
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.plain_errors import plain
from kohort.spark.runtime.subtopology_runner import SubtopologyRunner
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskEffect, TaskEvent
from kohort.spark.state import StateError, Store
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_LOOK_S: Final = 2.0

_Key: TypeAlias = TaskId | str  # a task, or a subtopology
_Outcome: TypeAlias = "asyncio.Task[Any]"


class Member(Protocol):
    """The member of the group."""

    def closed(self, *tasks: TaskId) -> None:
        """These are given up."""


class ChangelogReader(Protocol):
    """What keeps copies abreast of their changelogs: `kohort.spark.state.ChangelogReader`."""

    def follow(self, store: Store, partition: TopicPartition) -> None:
        """Keep a store abreast of its changelog."""

    async def unfollow(self, partition: TopicPartition) -> None:
        """Leave it alone."""


class Activator(Protocol):
    """`activation.Activation`."""

    async def activate(self, task: TaskId, open_producer: Callable[[], Awaitable[None]]) -> Activated:
        """Restore a task up to what is committed."""


class EndOffsetsReader(Protocol):
    """`end_offsets.EndOffsets`."""

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Where partitions end."""

    async def partitions(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions topics have."""

    async def pause(self) -> None:
        """Wait until idle subtopologies look again."""


class Interpreter:
    """Does effects.

    Args:
        plan: the application.
        manager: decides.
        member: told of tasks that are given up.
        stores, changelogs, ends: of the instance.
        activation: restores tasks.
        make_runner: makes the runner of a subtopology, when it is needed first.
        prepared: waited for before each look: global tables that have to be loaded.
        listener: told of epochs and failures.
        changed: called after each event: tasks, or reasons to wait, may have changed.
        fail: called with what stops the application.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        manager: TaskManager,
        member: Member,
        stores: OpenStores,
        changelogs: ChangelogReader,
        ends: EndOffsetsReader,
        activation: Activator,
        make_runner: Callable[[str], SubtopologyRunner],
        *,
        listener: Listener,
        changed: Callable[[], None],
        fail: Callable[[BaseException], None],
        prepared: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._plan, self._manager, self._member = plan, manager, member
        self._stores, self._changelogs, self._ends = stores, changelogs, ends
        self._activation, self._make_runner, self._prepared = activation, make_runner, prepared
        self._listener, self._changed, self._fail = listener, changed, fail
        self._runners: dict[str, SubtopologyRunner] = {}
        self._under_way: dict[_Key, asyncio.Task[Any]] = {}
        self._timings: dict[str, dict[str, float]] = {}
        self._closed = False

    # Effects -----------------------------------------------------------------------------------------------------

    def do(self, effects: Iterable[Effect]) -> None:
        """Begin to do these. Their outcomes come as events, later."""
        for effect in effects:
            if isinstance(effect, ForTask):
                self._for_task(effect)
            else:
                self._for_epochs(effect)
        self._changed()

    async def close(self) -> None:
        """Abort what is under way, and let go of everything."""
        self._closed = True
        under_way = list(self._under_way.values())
        for each in under_way:
            each.cancel()
        if under_way:
            await asyncio.wait(under_way)
        await asyncio.gather(*(runner.close() for runner in self._runners.values()))

    async def look(self) -> None:
        """Hear how far the inputs go, unless that is known: an epoch may take long, or hang, while they grow."""
        for name, epochs in self._manager.epochs.items():
            if epochs.positions() and time.time() - epochs.ends_at >= _LOOK_S:
                try:
                    await self._ends_of(name, epochs.positions())
                except (KafkaError, ClientError) as error:
                    log.debug("subtopology %s can't see how far its topics go: %s", name, error)

    def _start(
        self, key: _Key, work: Coroutine[Any, Any, Any], over: Callable[[_Outcome], Iterable[Effect]], name: str
    ) -> None:
        """Do something, instead of what is under way; when it is over, `over` makes effects of its outcome."""
        if key in self._under_way:
            self._under_way[key].cancel()
        task = self._under_way[key] = asyncio.create_task(work, name=f"kohort-{name}-{key}")

        def done(task: _Outcome) -> None:
            if self._under_way.get(key) is task:
                del self._under_way[key]
            if self._closed:
                if not task.cancelled():
                    task.exception()
                return
            try:
                self.do(over(task))
            except Exception as error:
                self._fail(error)

        task.add_done_callback(done)

    # Tasks -------------------------------------------------------------------------------------------------------

    def _for_task(self, effect: ForTask) -> None:
        task_id, operation, manager = effect.task, effect.operation, self._manager
        match effect.effect:
            case TaskEffect.RESTORE:
                open_producer = self._runner(task_id.subtopology).committer.open

                def restored(task: _Outcome) -> Iterable[Effect]:
                    if (event := _failure(task)) is not None:
                        return self._not_done(effect, *event)
                    return manager.restored(task_id, operation, *task.result())

                self._start(task_id, self._activation.activate(task_id, open_producer), restored, "restore")
            case TaskEffect.FOLLOW:

                def followed(task: _Outcome) -> Iterable[Effect]:
                    if (event := _failure(task)) is not None:
                        return self._not_done(effect, *event)
                    return manager.task_happened(task_id, operation, TaskEvent.OPENED)

                self._start(task_id, self._follow(task_id), followed, "follow")
            case TaskEffect.CANCEL:
                if task_id in self._under_way:
                    self._under_way[task_id].cancel()
                else:  # it has failed for good, and the application is stopping
                    asyncio.get_running_loop().call_soon(
                        lambda: self.do(manager.task_happened(task_id, operation, TaskEvent.CANCELLED))
                    )
            case TaskEffect.WAIT:
                self._start(
                    task_id,
                    asyncio.sleep(effect.seconds),
                    lambda task: manager.task_happened(task_id, operation, TaskEvent.DUE),
                    "wait",
                )
            case TaskEffect.CLOSE:
                self._start(
                    task_id,
                    self._close_windows(task_id),
                    lambda task: manager.stores_closed(task_id, operation, task.result()),
                    "close",
                )
            case TaskEffect.ACKNOWLEDGE:
                self._member.closed(task_id)

    def _not_done(self, effect: ForTask, event: TaskEvent, error: BaseException | None) -> Iterable[Effect]:
        if isinstance(error, ApplicationError):
            self._fail(error)
            return ()
        if error is not None and not isinstance(error, KafkaError | ClientError | StateError):
            raise error
        why = None if error is None else str(error)
        return self._manager.task_happened(effect.task, effect.operation, event, why)

    async def _follow(self, task_id: TaskId) -> None:
        stores = await self._stores.open(task_id)
        changelogs = self._plan.changelogs(task_id)
        for name, store in stores.items():
            self._changelogs.follow(store, changelogs[name])

    async def _close_windows(self, task_id: TaskId) -> int | None:
        for changelog in self._plan.changelogs(task_id).values():
            await self._changelogs.unfollow(changelog)
        positions = await self._stores.close(task_id)
        return sum(positions.values()) if positions else None

    # Epochs ------------------------------------------------------------------------------------------------------

    def _runner(self, subtopology: str) -> SubtopologyRunner:
        if subtopology not in self._runners:
            self._runners[subtopology] = self._make_runner(subtopology)
        return self._runners[subtopology]

    def _for_epochs(self, effect: ForEpochs) -> None:
        name, operation, manager, runner = effect.subtopology, effect.operation, self._manager, self._runner
        timings = self._timings.setdefault(name, {})

        def begin(work: Coroutine[Any, Any, Any], over: Callable[[_Outcome], Iterable[Effect]]) -> None:
            self._start(name, work, over, effect.effect.name.lower())

        def then(event: EpochEvent, failed: Callable[[BaseException], EpochEvent]) -> Callable[[_Outcome], Any]:
            """The event that follows, or that an error means."""

            def over(task: _Outcome) -> Iterable[Effect]:
                if task.cancelled():
                    return ()
                error = task.exception()
                if error is None:
                    return manager.epoch_happened(name, operation, event)
                return self._epoch_failed(effect, failed(error), error)

            return over

        match effect.effect:
            case EpochEffect.GATHER:
                begin(asyncio.sleep(effect.seconds), then(EpochEvent.GATHERED, _bug))
            case EpochEffect.LOOK:
                begin(self._look(name), lambda task: self._looked(effect, task))
            case EpochEffect.PAUSE if not effect.seconds:
                begin(self._ends.pause(), then(EpochEvent.DUE, _bug))
            case EpochEffect.PAUSE | EpochEffect.BACK_OFF:
                begin(asyncio.sleep(effect.seconds), then(EpochEvent.DUE, _bug))
            case EpochEffect.JOB:
                assert effect.epoch is not None
                timings["began"] = time.monotonic()
                begin(runner(name).run_job(effect.epoch), lambda task: self._job_done(effect, task))
            case EpochEffect.SEND:
                assert effect.epoch is not None
                timings.setdefault("sending", time.monotonic())
                begin(runner(name).send(effect.epoch), then(EpochEvent.SENT, _of_client(while_sending)))
            case EpochEffect.COMMIT:
                begin(runner(name).commit(), then(EpochEvent.COMMITTED, _of_client(while_committing)))
            case EpochEffect.STORE:
                timings["committed"] = time.monotonic()
                begin(runner(name).store(), lambda task: self._stored(effect, task))
            case EpochEffect.REPORT:
                assert effect.epoch is not None
                self._report(name, effect.epoch)
            case EpochEffect.SEND_LATER:
                begin(self._send_later(name, effect.seconds), then(EpochEvent.DUE, _bug))
            case EpochEffect.ABORT:
                begin(self._abort(name, self._under_way.get(name)), then(EpochEvent.ABORTED, _bug))
            case EpochEffect.CLOSE_PRODUCER:
                timings.clear()
                begin(runner(name).close_producer(), then(EpochEvent.CLOSED, _bug))
            case EpochEffect.STOP:
                error = ApplicationError(effect.why)
                error.__cause__ = self._last_error
                self._fail(error)

    _last_error: BaseException | None = None

    def _epoch_failed(self, effect: ForEpochs, event: EpochEvent, error: BaseException) -> Iterable[Effect]:
        """What an error means for an epoch: the event, and what listeners and the log are told."""
        name, why = effect.subtopology, plain(error)
        self._last_error = error
        match event:
            case EpochEvent.FAILED:
                log.warning("an epoch of subtopology %s failed", name, exc_info=error)
                self._listener.failed(f"subtopology {name}: {why}")
            case EpochEvent.STOP if isinstance(error, ApplicationError):
                why = str(error)
            case EpochEvent.STOP:
                why = f"what an epoch has made can't be written: {error}"
            case EpochEvent.RESTART:
                log.info("subtopology %s begins from what is committed: %s", name, error)
                why = f"an epoch begins again from what is committed: {error}"
            case EpochEvent.SEND_AGAIN:
                log.info("a transaction failed: %s", error)
                why = f"an epoch can't be committed, and is tried again: {error}"
            case EpochEvent.UNANSWERED:
                why = f"the brokers don't say whether a transaction is committed; asking again ({error})"
        return self._manager.epoch_happened(name, effect.operation, event, why)

    async def _look(self, name: str) -> tuple[Mapping[TopicPartition, int], Mapping[str, int]]:
        if self._prepared is not None:
            await self._prepared()
        epochs = self._manager.epochs[name]
        ends = await self._ends_of(name, epochs.plan.inputs.partitions(epochs.running))
        # Asked for after the ends: whoever wrote what is there knew of no more partitions.
        if epochs.plan.placed and lag(epochs.positions(), ends):
            return ends, await self._ends.partitions(epochs.plan.placed)
        return ends, {}

    async def _ends_of(self, name: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        ends = await self._ends.of(frozenset(partitions))
        epochs = self._manager.epochs[name]
        epochs.ends, epochs.ends_at = ends, time.time()
        return ends

    def _looked(self, effect: ForEpochs, task: _Outcome) -> Iterable[Effect]:
        if task.cancelled():
            return ()
        error = task.exception()
        if isinstance(error, KafkaError | ClientError):
            why = f"subtopology {effect.subtopology} can't see how far its topics go: {error}"
            return self._manager.epoch_happened(effect.subtopology, effect.operation, EpochEvent.UNSEEN, why)
        ends, partitions = task.result()
        now = asyncio.get_running_loop().time()
        return self._manager.looked(effect.subtopology, effect.operation, ends, partitions, now)

    def _job_done(self, effect: ForEpochs, task: _Outcome) -> Iterable[Effect]:
        if task.cancelled():
            return ()
        if (error := task.exception()) is not None:
            event = EpochEvent.STOP if isinstance(error, ApplicationError) else EpochEvent.FAILED
            return self._epoch_failed(effect, event, error)
        output: EpochOutput = task.result()
        self._timings[effect.subtopology]["job"] = time.monotonic()
        return self._manager.job_done(effect.subtopology, effect.operation, output.read)

    def _stored(self, effect: ForEpochs, task: _Outcome) -> Iterable[Effect]:
        if task.cancelled():
            return ()
        if (error := task.exception()) is not None:
            return self._epoch_failed(effect, EpochEvent.FAILED, error)
        took_ms = (time.monotonic() - self._timings[effect.subtopology]["began"]) * 1000
        return self._manager.stored(effect.subtopology, effect.operation, took_ms)

    async def _send_later(self, name: str, seconds: float) -> None:
        await self._runner(name).committer.abort()
        await asyncio.sleep(seconds)

    async def _abort(self, name: str, before: asyncio.Task[Any] | None) -> None:
        if before is not None:
            before.cancel()
            await asyncio.wait([before])
        await self._runner(name).abort()
        self._timings[name].clear()

    def _report(self, name: str, epoch: Epoch) -> None:
        statistics, offsets, timings = epoch.statistics, epoch.offsets, self._timings[name]
        assert statistics is not None and offsets is not None
        began, sending, committed = timings["began"], timings["sending"], timings["committed"]
        self._listener.epoch(
            EpochDone(
                at=time.time(), subtopology=name, number=epoch.epoch_input.epoch, input=epoch.plan.input,
                records=statistics.records, bytes=statistics.bytes, out_records=self._runner(name).out_records,
                dropped=statistics.dropped, reasons=statistics.reasons, late=statistics.late,
                lag=self._manager.epochs[name].lag, tasks=tuple(map(str, epoch.plan.tasks)),
                took_ms=(time.monotonic() - began) * 1000, job_ms=(timings["job"] - began) * 1000,
                commit_ms=(committed - sending) * 1000,
                positions={str(partition): each.offset for partition, each in offsets.items()},
            )
        )  # fmt: skip
        timings.clear()


def _failure(task: _Outcome) -> tuple[TaskEvent, BaseException | None] | None:
    """What a task's effect came to, if it didn't get to its end."""
    if task.cancelled():
        return TaskEvent.CANCELLED, None
    error = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return None if error is None else (TaskEvent.FAILED, error)


def _bug(error: BaseException) -> EpochEvent:
    """Pauses and closing don't fail."""
    raise error


def _of_client(meaning: Callable[[Exception], EpochEvent]) -> Callable[[BaseException], EpochEvent]:
    """What an error of the client means; anything else is a failure of the epoch."""
    return lambda error: meaning(error) if isinstance(error, Exception) else EpochEvent.FAILED
