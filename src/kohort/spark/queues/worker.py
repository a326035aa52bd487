"""Goes from epoch to epoch of a queue: acquires, runs the job, writes, acknowledges.

Results and dead letters are written before their records are acknowledged, so that nothing is lost, whenever the worker
dies; it may be done twice. Locks are renewed by the consumer meanwhile, for `processing_timeout_ms`: what isn't done by
then is cancelled, its records are released, and the next epoch is smaller. A record that is released at the broker's
limit of deliveries is gone, so what fails at its last delivery is rejected instead, with a dead letter.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from kohort.plurals import several
from kohort.spark.errors import ApplicationError, ProgramError
from kohort.spark.queues.acquired_rows import RowDecoder
from kohort.spark.queues.beside_loop import beside_loop
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.consumer import Acquiring
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.epoch import QueueEpoch
from kohort.spark.queues.epoch_size import EpochSize
from kohort.spark.queues.halving import Halved, halved
from kohort.spark.queues.records_out import dead_letters, output_records, without_values
from kohort.spark.queues.settlement import REJECT, Settlement
from kohort.spark.runtime.plain_errors import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_FAILED_EPOCHS: Final = 10
"""In a row; then the worker stops."""

_LONGEST_PAUSE_S: Final = 30.0

_CANCEL_S: Final = 20.0
"""What is cancelled has so long to end. A function that is in Python doesn't hear of it."""


class Work(Protocol):
    """Runs jobs. Both raise whatever the job raises."""

    async def run(self, rows: pa.Table) -> pa.Table:
        """The result of rows."""

    async def call(self, function: Callable[[DataFrame, str], object], rows: pa.Table, batch_id: str) -> None:
        """Gives a function of the user's the result's rows."""

    async def cancel(self) -> None:
        """Ends what runs, and waits for that."""


class QueueWorker:
    """Works on a queue until it is stopped.

    Args:
        send: delivers records to a topic. ValueError: one is too large, and none is sent.
        run_id: differs from run to run; batch ids begin with it.
        sleep: waits so many seconds.
        clock: in seconds.
        beside: runs a function while the event loop goes on.
    """

    def __init__(
        self,
        queue: CompiledQueue,
        consumer: Acquiring,
        work: Work,
        send: Callable[[str, pa.Table], Awaitable[None]],
        counts: QueueCounts,
        run_id: str,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float],
        beside: Callable[..., Awaitable[Any]] = beside_loop,
    ) -> None:
        self._queue = queue
        self._consumer = consumer
        self._work = work
        self._send = send
        self._counts = counts
        self._run_id = run_id
        self._sleep = sleep
        self._clock = clock
        self._beside = beside
        self._decoder = RowDecoder(queue)
        self._batches = 0
        self._failed_epochs = 0
        self._size = EpochSize(queue.settings.max_records, queue.settings.max_deliveries)
        self._late = False
        self._deadline = 0.0
        self._ends = asyncio.Event()

    async def run(self, stopping: asyncio.Event, grace_s: float) -> None:
        """Works until `stopping`: what is under way then has `grace_s` to end, and is released otherwise.

        Raises:
            ApplicationError: it can't go on: says why.
            KafkaError, ClientError: a broker refuses.
        """
        stopped = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                epoch = asyncio.create_task(self.epoch())
                try:
                    await asyncio.wait({epoch, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    if not epoch.done():
                        await self._end(epoch, grace_s)
                    if epoch.done():
                        await epoch
                finally:
                    epoch.cancel()
        finally:
            stopped.cancel()

    async def epoch(self) -> bool:
        """Acquires some records, and works on them; False if there were none.

        Raises:
            ApplicationError, KafkaError, ClientError: as of `run`.
        """
        records = await self._consumer.acquire(self._size.most)
        if records is None and self._counts.failure is not None:  # what failed is done elsewhere, or given up
            self._counts.failure = None
            self._counts.changed()
        if records is None or self._ends.is_set():
            return False
        self._late = False
        self._deadline = self._clock() + self._queue.settings.processing_timeout_ms / 1000
        self._counts.in_flight = records.num_rows
        self._counts.changed()
        try:
            settlement = await self._settlement(records.combine_chunks())
            await self._consumer.acknowledge(records, settlement)
            self._counts.epochs += 1
            if self._late:
                self._size.late()
            else:
                self._size.done(records.num_rows)
        finally:
            self._counts.in_flight = 0
            self._counts.changed()
        return True

    # What becomes of them ----------------------------------------------------------------------------------------

    async def _settlement(self, records: pa.Table) -> Settlement:
        """Does the work, and writes what comes of it."""
        rows, bad = await self._beside(self._decoder.decode, records)
        good = np.setdiff1d(np.arange(records.num_rows), list(bad))
        made = await self._run(rows)
        rules = self._queue.rules
        if self._ends.is_set() and made.failed:  # not the records' fault: those at their last delivery have another
            rules = replace(rules, max_deliveries=rules.max_deliveries + 1)
            made = Halved(failed=dict.fromkeys(range(len(good)), "the worker is shutting down"))
        results = pa.concat_tables(made.results) if made.results else None
        failed = {int(good[row]): why for row, why in made.failed.items()}
        try:
            epoch = QueueEpoch(records, results, rules, failed, dict(bad))
        except ValueError as error:
            raise ApplicationError(f"queue {self._queue.topic}: {error}") from error
        problem = await self._problem_of(self._write(epoch))
        if problem is not None:
            why = f"what came of {several(records.num_rows, 'record')} can't be written: {problem}"
            log.warning("queue %s: %s. They are released, or rejected at their last delivery", self._queue.topic, why)
            epoch.release(why)
        settlement = epoch.settlement
        unwritten = await self._write_letters(records, settlement)
        if unwritten is not None:
            problem, settlement = unwritten
        if problem is not None or made.given_up:
            await self._pause(problem or next(iter(made.failed.values())))
        else:
            self._failed_epochs = 0
            self._counts.failure = None
        self._log_rejected(records, settlement)
        return settlement

    async def _run(self, rows: pa.Table) -> Halved[pa.Table]:
        began = self._clock()

        async def run(start: int, end: int) -> pa.Table:
            return await self._limited("the job", lambda: self._work.run(rows.slice(start, end - start)))

        def explain(error: Exception) -> str | None:
            if isinstance(error, ProgramError):
                raise ApplicationError(str(error)) from error
            self._counts.failed_jobs += 1
            text = plain(error)
            log.warning("queue %s: a job failed: %s", self._queue.topic, text)
            return None if self._ends.is_set() or isinstance(error, TimeoutError) else text

        try:
            return await halved(rows.num_rows, run, explain)
        finally:
            self._counts.job_s += self._clock() - began

    async def _limited(self, what: str, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs something for as long as locks are renewed, and cancels it then. What is done all the same counts.

        Raises:
            TimeoutError: it isn't done by then.
            ApplicationError: nor does it end when it is cancelled.
        """
        late = f"{what} isn't done within processing_timeout_ms, {self._queue.settings.processing_timeout_ms:,} ms"
        left = self._deadline - self._clock()
        if left <= 0:
            self._late = True
            raise TimeoutError(late)
        running = asyncio.create_task(start())
        try:
            done, _ = await asyncio.wait({running}, timeout=left)
            if done:
                return await running
            try:
                await asyncio.wait_for(self._cancelled(running), _CANCEL_S)
            except TimeoutError:
                raise ApplicationError(
                    f"queue {self._queue.topic}: {late}, and doesn't end when it is cancelled. The worker stops; its "
                    f"records are handed out again"
                ) from None
            if not running.cancelled() and running.exception() is None:
                return running.result()
        finally:
            running.cancel()
        self._late = True
        raise TimeoutError(late)

    async def _cancelled(self, running: asyncio.Task[Any]) -> None:
        await self._work.cancel()
        await asyncio.wait({running})

    async def _write(self, epoch: QueueEpoch) -> None:
        """Writes to topics, then gives functions what is left. A row that can't be written rejects its record."""
        if not epoch.accepted.num_rows:
            return
        output = await self._beside(output_records, self._queue, epoch.accepted)
        if output.unwritable:
            epoch.reject(output.unwritable)
            output = await self._beside(output_records, self._queue, epoch.accepted)
        too_large: dict[int, str] = {}
        for topic, table in output.topics:
            too_large |= await self._send_rows(topic, table)
        epoch.reject(too_large)
        if not epoch.accepted.num_rows:
            return
        for function in self._queue.functions:
            self._batches += 1
            batch_id = f"{self._queue.topic}-{self._run_id}-{self._batches}"
            name = f"the function {getattr(function, '__name__', function)}"
            await self._limited(name, functools.partial(self._work.call, function, epoch.accepted, batch_id))

    async def _send_rows(self, topic: str, table: pa.Table) -> dict[int, str]:
        """Delivers records, by halves where one can't be one, and says which and why."""
        try:
            await self._send(topic, table)
        except ValueError as error:
            if table.num_rows == 1:
                return {0: f"can't be written to {topic}: {plain(error)}"}
        else:
            return {}
        middle = table.num_rows // 2
        errors = await self._send_rows(topic, table.slice(0, middle))
        return errors | {middle + row: why for row, why in (await self._send_rows(topic, table.slice(middle))).items()}

    async def _write_letters(self, records: pa.Table, settlement: Settlement) -> tuple[str, Settlement] | None:
        """Writes dead letters; where they can't be together, one by one, without a value that is too large.

        Returns:
            None if all are written; else why not, and a settlement in which the records without letters stay locked:
            the lock's end hands them out again.
        """
        topic, rejected = self._queue.settings.dead_letters, settlement.rows(REJECT)
        if topic is None or not len(rejected):
            return None
        letters = dead_letters(self._queue.topic, records, rejected, settlement.reasons)
        if await self._problem_of(self._send(topic, letters)) is None:
            self._counts.dead_letters += len(rejected)
            return None
        for number in range(len(rejected)):
            letter = letters.slice(number, 1)
            problem = await self._problem_of(self._send(topic, letter))
            if problem is not None:
                problem = await self._problem_of(self._send(topic, without_values(letter)))
            if problem is None:
                self._counts.dead_letters += 1
            else:
                left = rejected[number:]
                why = f"{len(left)} dead letters can't be written: {problem}"
                log.warning("queue %s: %s. Their records stay locked, and come again", self._queue.topic, why)
                return why, settlement.without(left)
        return None

    async def _problem_of(self, writing: Awaitable[None]) -> str | None:
        """Why something can't be written; None if it was."""
        try:
            await writing
        except ApplicationError:
            raise
        except Exception as error:
            return plain(error)
        return None

    async def _pause(self, why: str) -> None:
        """Waits after an epoch of which nothing came, with the records locked, so that they aren't used up.

        No longer than locks are renewed: else what is acknowledged then would be lost. Where they aren't, a lock may
        end in the pause: then its record comes again, as a delivery more.
        """
        self._failed_epochs += 1
        self._counts.failure = why
        if self._failed_epochs >= MOST_FAILED_EPOCHS:
            raise ApplicationError(
                f"queue {self._queue.topic}: {self._failed_epochs} epochs in a row have failed, the last one: {why}"
            )
        left = self._deadline - self._clock()
        if left <= 0:
            return
        pause = asyncio.ensure_future(self._sleep(min(2.0 ** (self._failed_epochs - 1), _LONGEST_PAUSE_S, left)))
        ends = asyncio.ensure_future(self._ends.wait())
        try:
            await asyncio.wait({pause, ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            ends.cancel()

    async def _end(self, epoch: asyncio.Task[bool], grace_s: float) -> None:
        """Waits for an epoch; the job that isn't done in time is cancelled, and its records are released.

        A function of the user's can't be ended while it is in Python: then nothing is acknowledged, and the locks end.
        """
        self._ends.set()
        await asyncio.wait({epoch}, timeout=grace_s)
        if not epoch.done():
            log.warning("queue %s: the job isn't done after %g s: its records are released", self._queue.topic, grace_s)
            cancelling = asyncio.ensure_future(self._work.cancel())
            await asyncio.wait({epoch}, timeout=grace_s)
            cancelling.cancel()
        if not epoch.done():
            log.warning("queue %s: what runs can't be ended: the worker leaves it, and its records", self._queue.topic)

    def _log_rejected(self, records: pa.Table, settlement: Settlement) -> None:
        rejected = settlement.rows(REJECT)
        if not len(rejected):
            return
        row = int(rejected[0])
        at = f"{records['partition'][row]}, offset {records['offset'][row]}"
        where = self._queue.settings.dead_letters
        log.warning(
            "queue %s: %d records are rejected%s; the first, partition %s: %s",
            self._queue.topic, len(rejected), "" if where is None else f", and are in {where}", at,
            settlement.reasons.get(row, ""),
        )  # fmt: skip
