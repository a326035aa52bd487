"""A lane runs the tasks of one part: epoch after epoch, one Spark job and one transaction each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, Protocol

import pyarrow as pa

from kohort.client.errors import ClientError
from kohort.client.time_limit import time_limit
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ApplicationError
from kohort.spark.jobs.epoch import EpochInput, EpochOutput
from kohort.spark.monitoring.events import STREAM, EpochDone, Listener
from kohort.spark.program.committed_metadata import Fingerprint, metadata
from kohort.spark.runtime.active_task import ActiveTask
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_committer import EpochCommitter, Probe, unprobed
from kohort.spark.runtime.epoch_limit import EpochLimit, LimitSettings
from kohort.spark.runtime.epoch_planning import EpochPlan, PollRound, lag
from kohort.spark.runtime.epoch_writes import EpochWrites, epoch_writes, first_unreadable
from kohort.spark.runtime.errors import RestartFromCommittedError, unreadable
from kohort.spark.runtime.job_thread import JobThread
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan
from kohort.spark.runtime.wait_reasons import plain
from kohort.spark.runtime.window_closing import later
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_PAUSES_S: Final = (0.0, 0.5, 2.0)
_BROKER_PAUSE_S: Final = 0.5
_SHORT_S: Final = 15.0
_HEARD_S: Final = 2.0
_GATHER_S: Final = 0.5


class Jobs(Protocol):
    """The subtopology's Spark jobs. All but `cancel` is called in the runner's own thread."""

    def run(self, work: EpochInput) -> EpochOutput:
        """Read the part's input."""

    def run_table(self, table: str, work: EpochInput) -> EpochOutput:
        """Read one of its tables."""

    def cancel(self) -> None:
        """Have what runs fail soon. From any thread."""


class SubtopologyRunner:
    """Runs the active tasks of a part that this instance has.

    Tasks are added when they are restored, and dropped or lost as the group says; the others go on meanwhile. `run`
    goes on until it is cancelled, or the application has to stop.

    Args:
        duties: what the part reads and writes.
        make_jobs: makes its Spark jobs, in the lane's thread.
        committer: commits its epochs.
        ends: where inputs end.
        reopen: told of tasks that don't run any more, and are to be opened anew from what is committed.
        program: the program's fingerprint.
        listener: told of epochs.
        waiting: told why it waits.
        opening: whether more of the part's tasks are being opened.
        limits: how large epochs may be.
        prepared: waited for before each round: global tables that have to be loaded.
        probe: called between the steps of an epoch.
    """

    def __init__(
        self,
        duties: SubtopologyPlan,
        make_jobs: Callable[[], Jobs],
        committer: EpochCommitter,
        ends: EndOffsets,
        reopen: Callable[[Collection[TaskId]], None],
        *,
        program: Fingerprint,
        listener: Listener,
        waiting: Callable[[str | None], None],
        opening: Callable[[], bool] = lambda: False,
        limits: LimitSettings | None = None,
        prepared: Callable[[], Awaitable[None]] | None = None,
        probe: Probe = unprobed,
    ) -> None:
        self.duties, self.committer = duties, committer
        self._make_jobs, self._jobs = make_jobs, None
        self._ends, self._reopen = ends, reopen
        self._program, self._listener, self._waiting, self._opening = program, listener, waiting, opening
        self._limit = EpochLimit(limits or LimitSettings())
        self._prepared, self._probe = prepared, probe
        self._worker = JobThread(f"kohort-lane-{duties.part}")
        self._tasks: dict[TaskId, ActiveTask] = {}
        self._busy: frozenset[TaskId] = frozenset()
        self._epoch: asyncio.Task[None] | None = None
        self._number = 0
        self._failures = 0
        self._short_since: float | None = None
        self._known: Mapping[TopicPartition, int] = {}
        self._heard = 0.0
        self._added, self._rested = asyncio.Event(), asyncio.Event()

    _jobs: Jobs | None

    # What the instance says --------------------------------------------------------------------------------------

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """Those that run."""
        return tuple(sorted(self._tasks))

    def positions(self) -> dict[TopicPartition, int]:
        """Where its tasks read on."""
        return {partition: at for task in self._tasks.values() for partition, at in task.positions.items()}

    @property
    def behind(self) -> tuple[int, float] | None:
        """Records that its tasks have left to read, and when it heard how far there are any, in seconds since 1970.

        None if it has no tasks, or hasn't heard.
        """
        return (lag(self.positions(), self._known), self._heard) if self._tasks and self._known else None

    async def look(self) -> None:
        """Hear how far the inputs go, unless it just has: an epoch may take long, or hang, while they grow."""
        if self._tasks and time.time() - self._heard >= _HEARD_S:
            try:
                await self._ask()
            except (KafkaError, ClientError) as error:
                log.debug("part %s can't see how far its topics go: %s", self.duties.part, error)

    def add(self, task: ActiveTask) -> None:
        """Run a task, from the next round on."""
        self._tasks[task.id] = task
        self._added.set()

    async def drop(self, tasks: Collection[TaskId]) -> None:
        """Run these no more: returns when the epoch that they are in is committed, and their stores are let go of."""
        for task in tasks:
            self._tasks.pop(task, None)
        while self._busy & set(tasks):
            self._rested.clear()
            await self._rested.wait()

    async def lose(self, tasks: Collection[TaskId]) -> None:
        """Run these no more, at once: what is under way is abandoned."""
        for task in tasks:
            self._tasks.pop(task, None)
        if self._busy & set(tasks):
            if self._epoch is not None:
                self._epoch.cancel()
            await self.drop(tasks)

    async def close(self) -> None:
        """Let go of everything; `run` must have ended. An epoch that is under way is abandoned."""
        await self.lose(list(self._tasks) + list(self._busy))
        await self.committer.close()
        await self._worker.closed()

    # The loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run epochs.

        Raises:
            ApplicationError: the application has to stop.
        """
        idle = True
        while True:
            if not self._tasks:
                idle = True
                self._waiting(None)
                self._added.clear()
                await self._added.wait()
                continue
            if idle:
                await self._gather()
                idle = False
                continue
            if self._prepared is not None:
                await self._prepared()
            try:
                ends = await self._ask()
                read = self._all_there(ends) and await self._round(ends)
            except (KafkaError, ClientError) as error:
                self._failures = 0  # the broker is what fails
                self._waiting(f"part {self.duties.part} can't see how far its topics go: {error}")
                await asyncio.sleep(_BROKER_PAUSE_S)
                continue
            if not read:
                await self._ends.pause()

    async def _gather(self) -> None:
        """Give tasks that are opened together a moment to begin together.

        The first one's whole backlog would else go before the others', and where it has gone to, stream time would be
        at its end before these begin.
        """
        with contextlib.suppress(TimeoutError):
            async with time_limit(_GATHER_S):
                while self._opening():
                    self._added.clear()
                    await self._added.wait()

    async def _ask(self) -> Mapping[TopicPartition, int]:
        """Where the inputs end. Raises as `EndOffsets.of`."""
        ends = await self._ends.of(self.duties.inputs.partitions(self._tasks))
        self._known, self._heard = ends, time.time()
        return ends

    async def _round(self, ends: Mapping[TopicPartition, int]) -> bool:
        """One round; whether there was anything to read.

        Raises:
            ApplicationError: the application has to stop.
            KafkaError, ClientError: as `_ask`.
        """
        partitions = await self._partitions(ends)
        this = PollRound(self.duties.inputs, ends)
        read = False
        while (plan := this.next(self.positions(), self.tasks, self._limit.records)) is not None:
            read = True
            self._busy = frozenset(plan.tasks)
            # Those that it has now: one of them may be dropped before the epoch gets to its first step.
            tasks = {task: self._tasks[task] for task in plan.tasks}
            self._epoch = asyncio.create_task(
                self._run_epoch(plan, tasks, ends, partitions), name=f"kohort-epoch-{self.duties.part}"
            )
            try:
                if not await self._settled(self._epoch):
                    return True
            finally:
                self._busy, self._epoch = frozenset(), None
                self._rested.set()
            await asyncio.sleep(0)
        if not read:
            self._waiting(None)
        return read

    async def _partitions(self, ends: Mapping[TopicPartition, int]) -> Mapping[str, int]:
        """How many partitions the topics have of which that matters, if there is anything to read.

        Asked for after the ends: so whoever wrote what is there knew of no more. Raises as `EndOffsets.partitions`.
        """
        if not self.duties.placed or not lag(self.positions(), ends):
            return {}
        return await self._ends.partitions(self.duties.placed)

    async def _settled(self, epoch: asyncio.Task[None]) -> bool:
        """Wait for an epoch; whether it is committed.

        Raises:
            ApplicationError: the application has to stop.
        """
        try:
            await asyncio.wait([epoch])
        except asyncio.CancelledError:
            # The lane is to end: its epoch isn't left running behind it.
            epoch.cancel()
            await asyncio.wait([epoch])
            await self._abandon()
            raise
        if epoch.cancelled():
            await self._abandon()
            if self._busy & self._tasks.keys():
                self._reopen_all()  # whether the epoch counts isn't known
            return False
        error = epoch.exception()
        if error is None:
            self._failures = 0
            return True
        if isinstance(error, ApplicationError):
            raise error
        await self._worker.idle()
        if isinstance(error, RestartFromCommittedError):
            log.info("part %s begins anew from what is committed: %s", self.duties.part, error)
            await self._begin_anew()
        else:
            await self._failed(error)
        return False

    async def _abandon(self) -> None:
        """After an epoch was cancelled: nothing of it may go on, neither in the thread nor in a transaction."""
        await self._worker.stopped(self._cancel_job)
        await self.committer.close(timeout_ms=1_000)

    async def _begin_anew(self) -> None:
        await self.committer.close(timeout_ms=0)
        self._reopen_all()

    def _reopen_all(self) -> None:
        stopped, self._tasks = set(self._tasks) | self._busy, {}
        self._reopen(stopped)

    async def _failed(self, error: BaseException) -> None:
        """A job failed, or the lane's own work with what came of it: try again, a few times.

        Raises:
            ApplicationError: that was the last time.
        """
        self._failures += 1
        self._limit.failed()
        text = f"part {self.duties.part}: {plain(error)}"
        log.warning("an epoch failed, for the %d. time in a row", self._failures, exc_info=error)
        self._listener.failed(text)
        if self._failures >= _ATTEMPTS:
            raise ApplicationError(
                f"part {self.duties.part} failed {_ATTEMPTS} times in a row at the same records, from"
                f" {', '.join(f'{at}:{offset}' for at, offset in sorted(self.positions().items()))}: {plain(error)}"
            ) from error
        await asyncio.sleep(_PAUSES_S[self._failures])
        await self._begin_anew()

    # An epoch ----------------------------------------------------------------------------------------------------

    async def _run_epoch(
        self,
        plan: EpochPlan,
        tasks: Mapping[TaskId, ActiveTask],
        ends: Mapping[TopicPartition, int],
        partitions: Mapping[str, int],
    ) -> None:
        started = time.monotonic()
        self._number += 1
        table = None if plan.input == STREAM else plan.input
        before = {task.partition: tasks[task].stream_time for task in plan.tasks}
        known = {partition: at for partition, at in before.items() if at is not None}
        work = EpochInput(self._number, plan.ranges, known, partitions.get(plan.ranges[0].topic, 0))
        await self._probe("planned")
        emitted = await self._worker.run(self._job, table, work)
        job_ms = (time.monotonic() - started) * 1000
        await self._probe("job")
        if (record := first_unreadable(self.duties, emitted.read.dead)) is not None:
            raise unreadable(record)
        made = await self._worker.run(epoch_writes, self.duties, emitted, table, before, self._scanner(tasks))
        times = {
            task: tasks[task].stream_time
            if table is not None
            else later(tasks[task].stream_time, emitted.read.max_times.get(task.partition))
            for task in plan.tasks
        }
        offsets = {
            TopicPartition(each.topic, each.partition): OffsetAndMetadata(
                each.end, metadata=metadata(times[task], self._program)
            )
            for each, task in zip(plan.ranges, plan.tasks, strict=True)
        }
        committing = time.monotonic()
        stands = await self.committer.commit(made, offsets)
        commit_ms = (time.monotonic() - committing) * 1000
        await self._probe("committed")
        await self._worker.run(_store, made, stands, tasks)
        await self._probe("stored")
        for each, task in zip(plan.ranges, plan.tasks, strict=True):
            tasks[task].positions[TopicPartition(each.topic, each.partition)] = each.end
            tasks[task].stream_time = times[task]
        took_ms = (time.monotonic() - started) * 1000
        read = emitted.read
        self._limit.took(took_ms, work.length, read.records, read.bytes)
        self._waiting(None)
        self._listener.epoch(
            EpochDone(
                at=time.time(), subtopology=self.duties.part, number=self._number, input=plan.input,
                records=read.records, bytes=read.bytes, out_records=made.records,
                dropped=read.dropped, reasons=read.reasons, late=read.late, lag=lag(self.positions(), ends),
                tasks=tuple(map(str, plan.tasks)), took_ms=took_ms, job_ms=job_ms, commit_ms=commit_ms,
                positions={str(partition): each.offset for partition, each in offsets.items()},
            )
        )  # fmt: skip

    def _job(self, table: str | None, work: EpochInput) -> EpochOutput:
        if self._jobs is None:
            self._jobs = self._make_jobs()
        return self._jobs.run(work) if table is None else self._jobs.run_table(table, work)

    def _cancel_job(self) -> None:
        if self._jobs is not None:
            self._jobs.cancel()

    def _scanner(self, tasks: Mapping[TaskId, ActiveTask]) -> Callable[[str, int, bytes, bytes], pa.Table]:
        by_partition = {task.partition: each for task, each in tasks.items()}

        def scan(store: str, partition: int, start: bytes, end: bytes) -> pa.Table:
            return by_partition[partition].stores[store].scan(start, end)

        return scan

    def _all_there(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether all partitions go as far as they were read. A new leader may take a moment to know that.

        Raises:
            ApplicationError: one has been too short for a while: it was made anew.
        """
        for partition, at in self.positions().items():
            if ends.get(partition, at) < at:
                now = asyncio.get_running_loop().time()
                self._short_since = now if self._short_since is None else self._short_since
                text = f"{partition} ends at offset {ends[partition]}, but the application has read up to {at}"
                if now - self._short_since > _SHORT_S:
                    raise ApplicationError(
                        f"{text}: the topic was deleted and made anew, or has lost records. Reset the group's offsets"
                        " and delete its internal topics"
                    )
                self._waiting(text)
                return False
        self._short_since = None
        return True


def _store(made: EpochWrites, stands: Mapping[tuple[str, int], int], tasks: Mapping[TaskId, ActiveTask]) -> None:
    by_partition = {task.partition: each for task, each in tasks.items()}
    for (store, _, partition), table in made.changelogs.items():
        keys, values = table["key"].combine_chunks(), table["value"].combine_chunks()
        by_partition[partition].stores[store].write(keys, values, stands[store, partition])
