"""Does what the task manager wants done for epochs, and tells it what came of that."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeAlias

from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import STREAM, EpochDone, Listener
from kohort.spark.runtime.chain import Chain
from kohort.spark.runtime.chain_epochs import ChainEpochs
from kohort.spark.runtime.chain_runner import ChainRunner
from kohort.spark.runtime.clock_timers import DueTimers, due_timers
from kohort.spark.runtime.commit_errors import while_committing, while_sending
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_planning import lag
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent
from kohort.spark.runtime.errors import RestartFromCommittedError
from kohort.spark.runtime.plain_errors import plain
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.under_way import Outcome, UnderWay
from kohort.spark.state import StateError, Store
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_LOOK_S: Final = 2.0

_Do: TypeAlias = Callable[[Iterable[Effect]], None]


class EpochInterpreter:
    """Does the effects of epochs, with a runner for each chain.

    Args:
        make_runner: makes the runner of a chain, when it is needed first.
        prepared: waited for before each look: global tables that have to be loaded.
        stores: those of a task that are open.
    """

    def __init__(
        self,
        manager: TaskManager,
        ends: EndOffsets,
        make_runner: Callable[[Chain], ChainRunner],
        under_way: UnderWay,
        *,
        listener: Listener,
        fail: Callable[[BaseException], None],
        prepared: Callable[[], Awaitable[None]] | None = None,
        stores: Callable[[TaskId], Mapping[str, Store]] = lambda _: {},
    ) -> None:
        self._manager, self._ends, self._make_runner, self._under_way = manager, ends, make_runner, under_way
        self._listener, self._fail, self._prepared, self._stores = listener, fail, prepared, stores
        self._runners: dict[str, ChainRunner] = {}
        self._times: dict[str, dict[EpochEffect, float]] = {}
        self._errors: dict[str, BaseException] = {}

    def runner(self, subtopology: str) -> ChainRunner:
        """The runner of the chain that a subtopology belongs to."""
        chain = self._manager.epochs[subtopology].chain
        if chain.id not in self._runners:
            self._runners[chain.id] = self._make_runner(chain)
        return self._runners[chain.id]

    async def close(self) -> None:
        """Close all runners; nothing may be under way."""
        await asyncio.gather(*(runner.close() for runner in self._runners.values()))

    async def look(self) -> None:
        """Read how far the inputs go, unless that is known: an epoch may take long, or hang, while they grow."""

        async def read(epochs: ChainEpochs, positions: Collection[TopicPartition]) -> None:
            try:
                await self._read_ends(epochs, positions)
            except (KafkaError, ClientError) as error:
                log.debug("subtopology %s can't see how far its topics go: %s", epochs.chain, error)

        old = time.time() - _LOOK_S
        await asyncio.gather(
            *(
                read(epochs, positions)
                for epochs in self._manager.chains
                if epochs.ends_at <= old and (positions := epochs.positions())
            )
        )

    def do(self, effect: ForEpochs, do: _Do) -> None:
        """Begin to do this; `do` gets the effects of what it comes to."""
        name, times = effect.chain, self._times.setdefault(effect.chain, {})

        def begin(
            work: Coroutine[Any, Any, Any], then: EpochEvent | Callable[[ForEpochs, Any], Iterable[Effect]]
        ) -> None:
            self._under_way.begin(
                name, work, lambda outcome: do(self._outcome(effect, outcome, then)), effect.effect.name.lower()
            )

        times.setdefault(effect.effect, time.monotonic())
        match effect.effect:
            case EpochEffect.GATHER:
                begin(asyncio.sleep(effect.seconds), EpochEvent.GATHERED)
            case EpochEffect.LOOK:
                begin(self._look(name), self._looked)
            case EpochEffect.PAUSE if not effect.seconds:
                begin(self._ends.pause(), EpochEvent.DUE)
            case EpochEffect.PAUSE | EpochEffect.BACK_OFF:
                begin(asyncio.sleep(effect.seconds), EpochEvent.DUE)
            case EpochEffect.JOB:
                assert effect.epoch is not None
                times.clear()
                times[EpochEffect.JOB] = time.monotonic()
                begin(self.runner(name).run_job(effect.epoch), self._job_done)
            case EpochEffect.SEND:
                assert effect.epoch is not None
                begin(self.runner(name).send(effect.epoch), EpochEvent.SENT)
            case EpochEffect.COMMIT:
                begin(self.runner(name).commit(), EpochEvent.COMMITTED)
            case EpochEffect.STORE:
                begin(self.runner(name).store(), self._stored)
            case EpochEffect.REPORT:
                assert effect.epoch is not None
                self._report(name, effect.epoch)
            case EpochEffect.SEND_LATER:
                begin(self._send_later(name, effect.seconds), EpochEvent.DUE)
            case EpochEffect.ABORT:
                begin(self._abort(name, self._under_way.get(name)), EpochEvent.ABORTED)
            case EpochEffect.CLOSE_PRODUCER:
                begin(self.runner(name).close_producer(), EpochEvent.CLOSED)
            case EpochEffect.STOP:
                error = ApplicationError(effect.why)
                error.__cause__ = self._errors.pop(name, None)
                self._fail(error)

    # What came of it ---------------------------------------------------------------------------------------------

    def _outcome(
        self, effect: ForEpochs, outcome: Outcome, then: EpochEvent | Callable[[ForEpochs, Any], Iterable[Effect]]
    ) -> Iterable[Effect]:
        if effect.operation != self._manager.epochs[effect.chain].operation:
            return ()  # something else was begun instead
        error = RuntimeError(f"{effect.effect.name} was cancelled") if outcome.cancelled() else outcome.exception()
        if error is not None:
            return self._failed(effect, error)
        self._errors.pop(effect.chain, None)
        if isinstance(then, EpochEvent):
            return self._manager.epoch_happened(effect.chain, effect.operation, then)
        return then(effect, outcome.result())

    def _failed(self, effect: ForEpochs, error: BaseException) -> Iterable[Effect]:
        """What an error means for an epoch, and what listeners and the log say of it."""
        chain, event = effect.chain, _event_of(effect.effect, error)
        epochs = self._manager.epochs[chain]
        name = epochs.chain if epochs.epoch is None else epochs.epoch.plan.subtopology
        self._errors[chain] = error
        match event:
            case EpochEvent.UNSEEN:
                why = f"subtopology {name} can't see how far its topics go: {error}"
            case EpochEvent.FAILED:
                why = plain(error)
                log.warning("an epoch of subtopology %s failed", name, exc_info=error)
                self._listener.failed(f"subtopology {name}: {why}")
            case EpochEvent.STOP if isinstance(error, ApplicationError):
                why = str(error)
            case EpochEvent.STOP:
                why = f"what an epoch has made can't be written: {error}"
            case EpochEvent.RESTART:
                why = f"an epoch begins again from what is committed: {error}"
                log.info("subtopology %s: %s", name, why)
            case EpochEvent.SEND_AGAIN:
                why = f"an epoch can't be committed, and is tried again: {error}"
                log.info("subtopology %s: %s", name, why)
            case EpochEvent.UNANSWERED:
                why = f"the brokers don't say whether a transaction is committed; asking again ({error})"
            case _:
                raise error
        return self._manager.epoch_happened(chain, effect.operation, event, why)

    def _looked(self, effect: ForEpochs, found: tuple[Any, Any, Any, DueTimers]) -> Iterable[Effect]:
        now = asyncio.get_running_loop().time()
        ends, written, partitions, due = found
        return self._manager.looked(effect.chain, effect.operation, ends, written, partitions, now, due)

    def _job_done(self, effect: ForEpochs, output: Any) -> Iterable[Effect]:
        return self._manager.job_done(effect.chain, effect.operation, output.statistics)

    def _stored(self, effect: ForEpochs, _: None) -> Iterable[Effect]:
        took_ms = (time.monotonic() - self._times[effect.chain][EpochEffect.JOB]) * 1000
        return self._manager.stored(effect.chain, effect.operation, took_ms)

    def _report(self, chain: str, epoch: Epoch) -> None:
        statistics, offsets, times, name = epoch.statistics, epoch.offsets, self._times[chain], epoch.plan.subtopology
        assert statistics is not None and offsets is not None
        began, sending, committing, storing, now = (
            *(times[each] for each in (EpochEffect.JOB, EpochEffect.SEND, EpochEffect.COMMIT, EpochEffect.STORE)),
            time.monotonic(),
        )
        self._listener.epoch(
            EpochDone(
                at=time.time(), subtopology=name, number=epoch.epoch_input.epoch, input=epoch.plan.input,
                records=statistics.records, bytes=statistics.bytes, out_records=self.runner(name).out_records,
                repartitioned=self.runner(name).repartitioned,
                dropped=statistics.dropped, reasons=statistics.reasons, late=statistics.late,
                lag=self._manager.epochs[name].lag(name), tasks=tuple(map(str, epoch.done_by)),
                took_ms=(now - began) * 1000, job_ms=(sending - began) * 1000, merge_ms=self.runner(name).merge_ms,
                commit_ms=(storing - sending) * 1000, send_ms=(committing - sending) * 1000,
                store_ms=(now - storing) * 1000, reads=tuple(statistics.reads),
                again=epoch.plan.input == STREAM and self._manager.epochs[name].chain.inputs[name].repartitioned,
                positions={
                    str(at): offsets[at].offset
                    for each in epoch.plan.ranges
                    for at in [TopicPartition(each.topic, each.partition)]
                },
            )
        )  # fmt: skip

    # What is done ------------------------------------------------------------------------------------------------

    async def _look(
        self, chain: str
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int], Mapping[str, int], DueTimers]:
        if self._prepared is not None:
            await self._prepared()
        epochs = self._manager.epochs[chain]
        unsettled = epochs.unsettled
        ends = await self._read_ends(epochs, epochs.chain.partitions(epochs.running) & epochs.positions().keys())
        written = await self._ends.written(unsettled)
        partitions = {topic: await self._ends.known_partitions(topic) for topic in epochs.chain.repartitioned}
        # Asked for after the ends: what wrote these records knew of no more partitions.
        if epochs.chain.placed and lag(epochs.positions(), ends):
            partitions |= await self._ends.partitions(epochs.chain.placed)
        return ends, written, partitions, await self._due(epochs)

    async def _due(self, epochs: ChainEpochs) -> DueTimers:
        plans, now = epochs.chain.subtopologies, time.time_ns() // 1_000_000
        tasks = [task for task in epochs.running if plans[task.subtopology].clocks]
        if not tasks:
            return DueTimers(now)
        try:
            return await asyncio.to_thread(due_timers, plans, tasks, self._stores, now)
        except StateError:
            return DueTimers(now)  # a task is being closed

    async def _read_ends(
        self, epochs: ChainEpochs, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        ends = await self._ends.of(frozenset(partitions))
        epochs.ends_read(ends, time.time())
        return ends

    async def _send_later(self, name: str, seconds: float) -> None:
        await self.runner(name).committer.abort()
        await asyncio.sleep(seconds)

    async def _abort(self, name: str, before: asyncio.Task[Any] | None) -> None:
        if before is not None:  # it is cancelled already
            await asyncio.wait([before])
        await self.runner(name).abort()


def _event_of(effect: EpochEffect, error: BaseException) -> EpochEvent | None:
    """What an error of an effect means; None: a bug."""
    if isinstance(error, ApplicationError):
        return EpochEvent.STOP
    match effect:
        case EpochEffect.LOOK:
            return EpochEvent.UNSEEN if isinstance(error, KafkaError | ClientError) else None
        case EpochEffect.SEND if isinstance(error, Exception):
            return while_sending(error)
        case EpochEffect.COMMIT if isinstance(error, Exception):
            return while_committing(error)
        case EpochEffect.JOB if isinstance(error, RestartFromCommittedError):
            return EpochEvent.RESTART
        case EpochEffect.JOB | EpochEffect.STORE:
            return EpochEvent.FAILED
    return None
