"""The test driver of streams applications."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import pyarrow as pa

from kohort.client.loop_thread import LoopThread
from kohort.spark.errors import ApplicationError, ProgramError
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.jobs.first_job import first_job
from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs
from kohort.spark.program.compiled import CompiledSubtopology, Program
from kohort.spark.program.error_policies import DeadLetter
from kohort.spark.queries.store_infos import store_infos
from kohort.spark.runtime.application import SparkJobs
from kohort.spark.runtime.global_tables import GLOBALS
from kohort.spark.runtime.planning import application_plan_of
from kohort.spark.state import StateDirectory
from kohort.spark.testing.input import InputRows, Key, Rows, Time, millis
from kohort.spark.testing.instance import MemoryInstance
from kohort.spark.testing.output import OutputRows, dead_letters, output_rows, readers_of
from kohort.spark.testing.session import local_session, without_warnings_of_pandas
from kohort.spark.testing.store_view import StoreView, table_kinds
from kohort.spark.testing.topics import MemoryTopics
from kohort.streams.configured_topology import configure
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark.app import StreamsApp

_START: Final = datetime(2000, 1, 1, tzinfo=UTC)


class TestDriver:
    """Runs an application in a test: without a broker and a group, in a local session of Spark.

    Plans, stores (RocksDB, in a temporary directory), late rows, closing windows and internal topics are those of
    `StreamsApp.run`. Each `pipe` is an epoch, and goes on until nothing is left to read. A context manager.

    Args:
        app: the application. Its bootstrap servers are never asked.
        spark: the session; by default the one that there is, or `local_session()`.
        partitions: of the topics that it reads and writes: of all of them, or by name (one where that says nothing).
        now: where the driver's clock begins, which only `advance` moves.

    Raises:
        ProgramError: the program can't run as it is written, or not with so many partitions.
    """

    __test__: ClassVar[bool] = False  # no class of tests, whatever pytest makes of its name

    def __init__(
        self,
        app: StreamsApp,
        spark: SparkSession | None = None,
        *,
        partitions: int | Mapping[str, int] = 1,
        now: Time = _START,
    ) -> None:
        self._app, self._spark, self._partitions = app, spark, partitions
        self._now = millis(now)
        self._stack = contextlib.ExitStack()
        self._running: _Running | None = None
        self._failure: str | None = None

    # Life ------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack, without_warnings_of_pandas():
            self._running = _Running(self._app, self._spark or local_session(), self._partitions, self._clock, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and removes its stores. May be called twice."""
        self._running = None
        self._stack.close()

    # Input -----------------------------------------------------------------------------------------------------------

    def pipe(
        self,
        topic: str,
        rows: Rows,
        *,
        key: Key | Sequence[Key] = None,
        at: Time | Sequence[Time] | None = None,
        partition: int | None = None,
        step: bool = True,
    ) -> None:
        """Writes rows to a topic that the application reads, and has it read them.

        Args:
            topic: its name.
            rows: dicts of columns; bytes or text are values as they are, such as ones that can't be read; None is a
                record without a value. Or an Arrow table, a DataFrame of Spark or of pandas.
            key: of all records, or one for each: text, bytes, or the columns that it holds. By default what the
                topic's `key=` says, none where it says nothing.
            at: the timestamp of all records, or one for each; by default the driver's clock.
            partition: that all go to; by default where their keys lead.
            step: whether the application reads them at once; else with the next `step`.

        Raises:
            ValueError: rows that can't be the topic's: says which row, and what is wrong.
            ApplicationError: the application stops: says at which record of which topic, or why the job failed.
        """
        running = self._run()
        given = running.input(topic)
        records = given.records(rows, key, at, self._now)
        running.write(topic, records, partition)
        if step:
            self.step()

    def delete(self, topic: str, *keys: Key, at: Time | None = None, step: bool = True) -> None:
        """Writes records without a value, which delete what a table has of these keys: text, or the key's columns.

        Raises:
            as `pipe`.
        """
        self.pipe(topic, [None] * len(keys), key=keys, at=at, step=step)

    def step(self) -> None:
        """Has the application read all there is, and what comes of it, until nothing is left.

        Raises:
            ApplicationError: as of `pipe`.
        """
        running = self._run()
        if self._failure is not None:
            raise ApplicationError(f"the application has stopped before: {self._failure}")
        try:
            running.settle()
        except ApplicationError as error:
            self._failure = str(error)
            if isinstance(error.__cause__, BadRecordError):
                error.add_note(running.row_of(error.__cause__))
            raise

    def advance(self, by: timedelta | float) -> None:
        """Moves the driver's clock on, by a span or so many seconds, and steps.

        The clock gives records their timestamps where `at` says none. Windows close by stream time, which only records
        move.
        """
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if span < timedelta():
            raise ValueError(f"time goes on, not back by {-span}")
        self._now += span // timedelta(milliseconds=1)
        self.step()

    @property
    def now(self) -> datetime:
        """The driver's clock."""
        return datetime.fromtimestamp(self._now / 1000, UTC)

    # Output ----------------------------------------------------------------------------------------------------------

    def output(self, topic: str) -> OutputRows:
        """The rows that were written to a topic since this was asked last: a list of dicts.

        Raises:
            ValueError: the application writes no such topic.
        """
        return self._run().output(topic)

    def records(self, topic: str) -> pa.Table:
        """All records that a topic has, internal ones too: offset, timestamp, key, value, headers, partition.

        Raises:
            ValueError: there is no such topic.
        """
        return self._run().records(topic)

    def store(self, name: str) -> StoreView:
        """A store as it is now: an aggregate's or a table's rows by key, of all partitions.

        Raises:
            ValueError: the application has no such store.
        """
        return self._run().store(name)

    @property
    def late(self) -> int:
        """Rows that came after their window was closed, until now."""
        return self._run().instance.late

    @property
    def dropped(self) -> dict[str, int]:
        """Records that were left out, until now, by reason: {"unreadable": 1, "no key": 2}."""
        return dict(self._run().instance.dropped)

    def _clock(self) -> int:
        return self._now

    def _run(self) -> _Running:
        if self._running is None:
            raise RuntimeError("the driver doesn't run: enter it with `with` first")
        return self._running


class _Running:
    """What a driver has while it runs: topics, a session's settings, an instance. Closed by `stack`."""

    def __init__(
        self,
        app: StreamsApp,
        spark: SparkSession,
        partitions: int | Mapping[str, int],
        clock: Any,
        stack: contextlib.ExitStack,
    ) -> None:
        self._spark = spark
        with first_job(spark, lambda: False):
            program = app.compile(spark)
        self._topics = MemoryTopics(clock)
        self._read: dict[str, int] = {}
        self._last: dict[str, dict[tuple[int, int], int]] = {}
        self._readers, self._infos, self._kinds = readers_of(program), store_infos(program), table_kinds(program)
        self._letters = {each.on_error.topic for each in program.sources if isinstance(each.on_error, DeadLetter)}
        tasks = self._create_topics(program, partitions)
        cores = max(1, spark.sparkContext.defaultParallelism)
        largest = max((spec.heap_bytes for each in program.subtopologies for spec in each.aggregates), default=0)
        path = stack.enter_context(tempfile.TemporaryDirectory(prefix="kohort-test-", ignore_cleanup_errors=True))
        directory = stack.enter_context(StateDirectory(path, program.application_id))
        stack.enter_context(session_settings(spark, cores, largest))
        compiled = {each.id: each for each in program.subtopologies}
        compiled[GLOBALS] = CompiledSubtopology(GLOBALS, None, program.globals, ())

        @functools.cache
        def jobs_of(name: str) -> SparkJobs:
            jobs = SubtopologyJobs(spark, compiled[name], rpc, servers=app.settings.client, parallelism=lambda: cores)
            return SparkJobs(jobs, compiled[name])

        self.instance = MemoryInstance(application_plan_of(program), tasks, self._topics, directory, jobs_of)
        rpc = stack.enter_context(RpcServer(self.instance.lookup, fetch=self._topics.read))
        self._loop = LoopThread("kohort-test-driver")
        stack.callback(self._loop.close)
        stack.callback(lambda: self._loop.run(self.instance.close()))
        self._loop.run(self.instance.start())
        plain_decimals = spark.conf.get("spark.sql.ansi.enabled") == "true"
        self._inputs = {each.topic: InputRows(each, plain_decimals=plain_decimals) for each in program.sources}
        self._partitioners = {each.topic: each.partitioner for each in program.sources}

    def input(self, topic: str) -> InputRows:
        found: InputRows = _found(self._inputs, topic, "topic", "the application reads")
        return found

    def write(self, topic: str, records: pa.Table, partition: int | None) -> None:
        of_topic = self._topics.partitions(topic)
        if partition is not None and not 0 <= partition < of_topic:
            raise ValueError(f"topic {topic!r}: partition={partition}, but it has {of_topic}")
        numbers, offsets = self._topics.append(topic, records, partition, self._partitioners[topic])
        places = zip(numbers.tolist(), offsets.tolist(), strict=True)
        self._last[topic] = {place: row for row, place in enumerate(places)}

    def settle(self) -> None:
        with without_warnings_of_pandas():
            self._loop.run(self.instance.settle())

    def row_of(self, error: BadRecordError) -> str:
        """Which row of a test a bad record is."""
        row = self._last.get(error.topic, {}).get((error.partition, error.offset))
        return f"topic {error.topic!r}, " + ("piped before" if row is None else f"row {row} of what was piped last")

    def output(self, topic: str) -> OutputRows:
        names = {*self._readers, *self._letters}
        _found(dict.fromkeys(names, 0), topic, "topic", "the application writes")
        first, self._read[topic] = self._read.get(topic, 0), self._topics.appends(topic)
        records = self._topics.written(topic, first)
        if topic in self._readers:
            return output_rows(records, self._readers[topic], self._spark)
        return dead_letters(records, self._spark)

    def records(self, topic: str) -> pa.Table:
        _found(dict.fromkeys(self._topics.names(), 0), topic, "topic", "there")
        return self._topics.written(topic)

    def store(self, name: str) -> StoreView:
        info = _found(self._infos, name, "store", "the application has")
        rows = [each.scan() for each in self.instance.stores_of(name)]
        return StoreView(info, pa.concat_tables(rows).sort_by("key"), self._kinds.get(name, {}))

    def _create_topics(self, program: Program, partitions: int | Mapping[str, int]) -> list[TaskId]:
        """Creates all topics that the application reads and writes; its tasks."""
        names = [*(source.topic for source in program.sources), *program.sinks]
        by_name = dict.fromkeys(names, partitions) if isinstance(partitions, int) else partitions
        for name in by_name:
            _found(dict.fromkeys(names, 0), name, "topic", "the application reads or writes")
        for name in names:
            self._topics.create(name, by_name.get(name, 1))

        def known(name: str) -> int | None:
            return self._topics.partitions(name) if name in self._topics else None

        configured = configure(program.topology, known, lambda pattern: ())
        problem = configured.problem
        if problem is not None and problem.code is not StatusCode.MISSING_INTERNAL_TOPICS:
            raise ProgramError(problem.detail)
        for topic in configured.missing:
            self._topics.create(topic.name, topic.partitions)
        return [TaskId(each.id, number) for each in configured.subtopologies.values() for number in range(each.tasks)]


def _found(among: Mapping[str, Any], name: str, what: str, where: str) -> Any:
    if name not in among:
        raise ValueError(f"there is no {what} {name!r}; {where}: {', '.join(sorted(among)) or 'none'}")
    return among[name]
