"""The test driver of queues."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from kohort.client.loop_thread import LoopThread
from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.jobs import QueueJobs
from kohort.spark.queues.settlement import Settlement
from kohort.spark.queues.worker import QueueWorker
from kohort.spark.testing.input import InputRows, Key, Rows, Time, millis
from kohort.spark.testing.output import OutputRows, dead_letters, output_rows, reader_of
from kohort.spark.testing.session import local_session, without_warnings_of_pandas
from kohort.spark.testing.topics import MemoryTopics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kohort.spark.app import StreamsApp

_START: Final = 946_684_800_000  # 2000-01-01, as of TestDriver


class QueueDriver:
    """Works on an application's queues in a test, without a broker: rows in, outcomes and results out.

        with QueueDriver(app) as driver:
            assert driver.pipe("images", [{"url": "a.png"}, {"url": "torn"}]) == ["accept", "reject"]
            assert driver.output("thumbnails") == [{"url": "a.png", "size": 12}]

    Plans, formats, outcomes and dead letters are those of `StreamsApp.run`. Nothing is handed out again by itself: pipe
    what is released once more, with a `delivery_count`. A context manager.

    Args:
        app: the application. Its bootstrap servers are never asked.
        spark: the session; by default the one that there is, or `local_session()`.

    Raises:
        ProgramError: a queue can't run as it is written.
    """

    def __init__(self, app: StreamsApp, spark: SparkSession | None = None) -> None:
        self._app, self._given = app, spark
        self._stack = contextlib.ExitStack()
        self._workers: dict[str, _MemoryWorker] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack, without_warnings_of_pandas():
            self._spark = self._given or local_session()
            queues = self._app.compile_queues(self._spark)
            stack.enter_context(session_settings(self._spark, max(1, self._spark.sparkContext.defaultParallelism)))
            thread = LoopThread("kohort-queue-driver")
            stack.callback(thread.close)
            self._workers = {each.topic: _MemoryWorker(self._spark, each, thread) for each in queues}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pipe(
        self,
        topic: str,
        rows: Rows,
        *,
        key: Key | Sequence[Key] = None,
        at: Time | Sequence[Time] | None = None,
        delivery_count: int = 1,
    ) -> list[str]:
        """Has rows of a queue worked on, in one epoch, and returns what becomes of each.

        Args:
            topic: the queue's.
            rows, key, at: as of `TestDriver.pipe`.
            delivery_count: how often the records were handed out, this time included.

        Returns:
            "accept", "release" or "reject" for each row.

        Raises:
            ValueError: there is no such queue, or rows that can't be its.
            ApplicationError: the worker stops: says why.
        """
        return self._worker(topic).pipe(rows, key, at, delivery_count)

    def output(self, topic: str) -> OutputRows:
        """The rows that were written to a topic since this was asked last; of dead letters as `TestDriver.output`.

        Raises:
            ValueError: no queue writes such a topic.
        """
        for each in self._workers.values():
            if (records := each.taken(topic)) is not None:
                output = next((output for output in each.queue.outputs if output.topic == topic), None)
                if output is None:
                    return dead_letters(records, self._spark)
                return output_rows(records, reader_of(output), self._spark)
        raise ValueError(f"no queue writes topic {topic!r}")

    def _worker(self, topic: str) -> _MemoryWorker:
        if topic not in self._workers:
            known = ", ".join(self._workers) or "none: enter the driver with `with` first"
            raise ValueError(f"there is no queue {topic!r}; there are {known}")
        return self._workers[topic]


class _MemoryWorker:
    """A worker on records in memory: acquires what is piped, and keeps what is written."""

    def __init__(self, spark: SparkSession, queue: CompiledQueue, thread: LoopThread) -> None:
        self.queue = queue
        self._thread = thread
        plain_decimals = spark.conf.get("spark.sql.ansi.enabled") == "true"
        self._input = InputRows(queue.source, plain_decimals=plain_decimals)
        self._jobs = QueueJobs(spark, queue)
        self._sent: dict[str, list[pa.Table]] = {topic: [] for topic in queue.written}
        self._piped = MemoryTopics(lambda: _START)
        self._piped.create(queue.topic, 1)
        self._acquired: pa.Table | None = None
        self._settlement: Settlement | None = None
        self._worker = QueueWorker(
            queue, self, self, self._send, QueueCounts(queue.topic), "test", sleep=_no_sleep, clock=time.monotonic
        )

    def pipe(
        self, rows: Rows, key: Key | Sequence[Key], at: Time | Sequence[Time] | None, deliveries: int
    ) -> list[str]:
        records = self._input.records(rows, key, at, millis(_START))
        count = records.num_rows
        if not count:
            return []
        topic, before = self.queue.topic, self._piped.appends(self.queue.topic)
        self._piped.append(topic, records)
        table = self._piped.written(topic, before)
        table = table.append_column("topic", pa.array([topic] * count).dictionary_encode())
        self._acquired = table.append_column("delivery_count", pa.array([deliveries] * count, pa.int16()))
        with without_warnings_of_pandas():
            self._thread.run(self._worker.epoch())
        assert self._settlement is not None
        return [AcknowledgeType(int(kind)).name.lower() for kind in self._settlement.kinds]

    def taken(self, topic: str) -> pa.Table | None:
        """What was written to a topic since this was asked last; None: it writes no such topic."""
        if topic not in self._sent:
            return None
        tables, self._sent[topic] = self._sent[topic], []
        if not tables:
            return pa.table(
                {name: pa.array([], RECORD_SCHEMA.field(name).type) for name in ("key", "value", "headers")}
            )
        return pa.concat_tables(tables)

    async def _send(self, topic: str, table: pa.Table) -> None:
        self._sent[topic].append(table)

    # What the worker asks of a share group and of Spark.

    async def acquire(self, most: int) -> pa.Table | None:
        """What was piped, in one epoch however much it is."""
        acquired, self._acquired = self._acquired, None
        return acquired

    async def acknowledge(self, records: pa.Table, settlement: Settlement) -> None:
        self._settlement = settlement

    async def run(self, rows: pa.Table) -> pa.Table:
        return self._jobs.run(rows)

    async def call(self, function: Callable[[DataFrame, str], object], rows: pa.Table, batch_id: str) -> None:
        self._jobs.call(function, rows, batch_id)

    async def cancel(self) -> None:
        """Nothing runs beside a test."""


async def _no_sleep(_: float) -> None:
    """No time goes by in a test."""
