"""Runs a chain's epochs, step by step, as `epoch_states` says: Spark jobs, transactions, stores."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.errors import CommitFailedError
from kohort.client.time_limit import time_limit
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.epoch import ROWS_SCHEMA, EpochInput, EpochOutput
from kohort.spark.jobs.drop_reasons import NO_TOPIC
from kohort.spark.runtime.chain import Chain
from kohort.spark.runtime.commit_errors import while_sending
from kohort.spark.runtime.effects import Epoch
from kohort.spark.runtime.epoch_committer import Probe, unprobed
from kohort.spark.runtime.epoch_states import EpochEvent
from kohort.spark.runtime.epoch_writes import EpochWrites, MergedRows, epoch_writes, first_unreadable
from kohort.spark.runtime.errors import RestartFromCommittedError, unreadable
from kohort.spark.runtime.job_thread import JobThread
from kohort.spark.runtime.named_topics import addressed, named_topics
from kohort.spark.state import Store
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

THREAD_NAME: Final = "kohort-subtopology"

_ABANDON_S: Final = 10.0
_BEGIN_AGAIN_S: Final = 0.2
_ABORT_MS: Final = 1_000
"""For a producer to abort its transaction: readers of what is committed wait for that."""


class Jobs(Protocol):
    """The subtopology's Spark jobs. All but `cancel` is called in the runner's own thread."""

    def run(self, epoch_input: EpochInput) -> EpochOutput:
        """Read the subtopology's input."""

    def run_table(self, table: str, epoch_input: EpochInput) -> EpochOutput:
        """Read one of its tables."""

    def call(self, branch: int, batch_id: str, rows: pa.Table) -> None:
        """Give a function of the user's the rows of a branch that one task has made, as `run` returned them."""

    def cancel(self) -> None:
        """Make what runs fail soon. From any thread."""


class Committer(Protocol):
    """Sends and commits epochs, as `EpochCommitter` does."""

    async def open(self) -> None:
        """Be ready to send."""

    async def missing(self, topics: Collection[str]) -> frozenset[str]:
        """Those of some topics that aren't there."""

    async def begin_batches(self, begun: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit where batches begin, with where they end as metadata."""

    async def send(self, writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Begin a transaction, and send an epoch's records and offsets in it."""

    async def commit(self) -> Mapping[tuple[str, int], int]:
        """Commit the transaction; the changelogs' offsets after what was sent, by (store, partition)."""

    async def abort(self) -> None:
        """Abort the transaction, if one is open."""

    async def close(self, *, timeout_ms: float = 5_000) -> None:
        """Abort the transaction, if one is open, and let go of what sends."""


class ChainRunner:
    """Does what the epochs of one chain need; one step at a time.

    Args:
        make_jobs: makes the Spark jobs of one of its subtopologies, in the runner's thread.

    Attributes:
        out_records, repartitioned: how many records the epoch sends, and how many of them to repartition topics.
        merge_ms: how long it took, after the job, to prepare what is to be sent and stored.
    """

    def __init__(
        self,
        chain: Chain,
        make_jobs: Callable[[str], Jobs],
        committer: Committer,
        stores: Callable[[TaskId], Mapping[str, Store]],
        probe: Probe = unprobed,
    ) -> None:
        self.chain, self.committer = chain, committer
        self._make_jobs, self._stores, self._probe = make_jobs, stores, probe
        self._jobs: dict[str, Jobs] = {}
        self._thread = JobThread(f"{THREAD_NAME}-{chain.id}")
        self._writes = EpochWrites()
        self.out_records = self.repartitioned = 0
        self.merge_ms = 0.0
        self._positions: Mapping[tuple[str, int], int] = {}
        self._in_epoch: Mapping[tuple[str, int], Store] = {}

    async def run_job(self, epoch: Epoch) -> EpochOutput:
        """Run the epoch's job, and prepare what is to be sent and stored.

        Raises:
            ApplicationError: a record can't be read, where the application is to stop at that.
            Exception: whatever the job fails with.
        """
        plan = self.chain.subtopologies[epoch.plan.subtopology]
        self._in_epoch = {
            (name, task.partition): store for task in epoch.plan.all_tasks for name, store in self._stores(task).items()
        }
        await self._probe("planned")
        if epoch.begun:
            await self._begin(epoch.begun)
            await self._probe("batches begun")
        output = await self._thread.run(self._job, epoch)
        await self._probe("job")
        if (record := first_unreadable(plan, output.statistics.dead)) is not None:
            raise unreadable(record)
        merging = time.monotonic()
        self._writes = await self._thread.run(
            epoch_writes,
            plan,
            output,
            epoch.table,
            dict(epoch.stream_times),
            self._scan,
            {
                number: MergedRows(self.chain.merged_into(output), epoch.epoch_input.mergers[number].stream_times)
                for number, output in self.chain.mergeable(plan.id).items()
                if number in epoch.plan.mergers
            },
            self._lookup,
        )
        self.merge_ms = (time.monotonic() - merging) * 1000
        self.out_records, self.repartitioned = self._writes.records, self._writes.repartitioned
        if epoch.begun:
            await self._thread.run(self._call, epoch, output)
            await self._probe("called")
        return output

    async def send(self, epoch: Epoch) -> None:
        """Send it in a transaction.

        Raises:
            ApplicationError: a column names a topic that isn't there, where the application is to stop at that.
            others: as `EpochCommitter.missing` and `EpochCommitter.send`.
        """
        assert epoch.offsets is not None
        writes = self._writes
        if writes.named:
            # Here, not with the job: a broker that is away is waited for, as when something is sent.
            missing = await self.committer.missing(named_topics(writes.named))
            tables, unknown = addressed(writes.named, missing)
            writes = replace(writes, sent=[*writes.sent, *tables], named=[])
            if epoch.statistics is not None:
                epoch.statistics.reasons.pop(NO_TOPIC, None)  # it may be sent again
                epoch.statistics.drop(NO_TOPIC, unknown)
        await self.committer.send(writes, epoch.offsets)

    async def commit(self) -> None:
        """Commit it. Raises as `EpochCommitter.commit`."""
        self._positions = await self.committer.commit()
        await self._probe("committed")

    async def store(self) -> None:
        """Write what is committed to the stores. Raises StateError."""
        await self._thread.run(self._store)
        self._forget()
        await self._probe("stored")

    async def abort(self) -> None:
        """Let nothing of the epoch go on, neither in the thread nor in a transaction."""
        await self._thread.stopped(self._cancel_job)
        await self.committer.close(timeout_ms=_ABORT_MS)
        self._forget()

    async def close_producer(self) -> None:
        """Wait until the thread has nothing to do, and close the producer."""
        await self._thread.idle()
        await self.committer.close(timeout_ms=_ABORT_MS)
        self._forget()

    async def close(self) -> None:
        """Abort what is under way, close the producer and the thread. A job that can't be cancelled is abandoned."""
        with contextlib.suppress(TimeoutError):
            async with time_limit(_ABANDON_S):
                await self._thread.stopped(self._cancel_job)
        await self.committer.close()
        if self._thread.busy:
            self._thread.close()
        else:
            await self._thread.closed()

    def _forget(self) -> None:
        """Let go of the epoch's tables and stores: the next one may be long in coming."""
        self._writes, self._positions, self._in_epoch = EpochWrites(), {}, {}

    def _job(self, epoch: Epoch) -> EpochOutput:
        name = epoch.plan.subtopology
        if name not in self._jobs:
            self._jobs[name] = self._make_jobs(name)
        if epoch.table is None:
            return self._jobs[name].run(epoch.epoch_input)
        return self._jobs[name].run_table(epoch.table, epoch.epoch_input)

    async def _begin(self, begun: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit where batches end before a function gets them; for as long as the coordinator can't be reached.

        Raises:
            RestartFromCommittedError: the tasks are another's, or it isn't known whose they are.
            others: a person must mend it.
        """
        while True:
            try:
                await self.committer.begin_batches(begun)
            except Exception as error:
                event = EpochEvent.RESTART if isinstance(error, CommitFailedError) else while_sending(error)
                if event is EpochEvent.STOP:
                    raise
                if event is not EpochEvent.SEND_AGAIN:
                    raise RestartFromCommittedError(f"batches can't be begun: {error}") from error
                log.info("subtopology %s: batches can't be begun yet: %s", self.chain, error)
                await asyncio.sleep(_BEGIN_AGAIN_S)
            else:
                return

    def _call(self, epoch: Epoch, output: EpochOutput) -> None:
        """Give functions their rows: those of each task for themselves, which are the same if it is done elsewhere."""
        name = epoch.plan.subtopology
        for branch, call in self.chain.subtopologies[name].calls.items():
            rows = output.rows.get(branch, ROWS_SCHEMA.empty_table())
            for each in epoch.plan.ranges:
                mine = rows.filter(pc.equal(rows["partition"], each.partition))
                if mine.num_rows:
                    self._jobs[name].call(branch, call.batch_id(each, epoch.epoch_input.now), mine)

    def _cancel_job(self) -> None:
        for jobs in list(self._jobs.values()):
            jobs.cancel()

    def _scan(self, store: str, partition: int, start: bytes, end: bytes) -> pa.Table:
        return self._in_epoch[store, partition].scan(start, end)

    def _lookup(self, store: str, partition: int, keys: pa.Array) -> pa.Array:
        return self._in_epoch[store, partition].get_many(keys)

    def _store(self) -> None:
        for (store, _, partition), table in self._writes.changelogs.items():
            keys, values = table["key"].combine_chunks(), table["value"].combine_chunks()
            position = self._positions[store, partition]
            self._in_epoch[store, partition].write(keys, values, position, read_again=True)
        pa.default_memory_pool().release_unused()
