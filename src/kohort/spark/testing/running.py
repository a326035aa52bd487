"""An application that runs in a test: its topics in memory, its session, an instance that has all tasks."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kohort.client.loop_thread import LoopThread
from kohort.spark.errors import ProgramError
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.jobs.first_job import first_job
from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs
from kohort.spark.program.compiled import CompiledSubtopology, Program
from kohort.spark.program.error_policies import DeadLetter
from kohort.spark.program.source_topics import matched_topics, with_topics
from kohort.spark.runtime.application import SparkJobs
from kohort.spark.runtime.global_tables import GLOBALS
from kohort.spark.runtime.planning import application_plan_of
from kohort.spark.state import StateDirectory
from kohort.spark.testing.input import InputRows
from kohort.spark.testing.instance import MemoryInstance
from kohort.spark.testing.output import BY_COLUMN, OutputRows, dead_letters, output_rows, readers_of
from kohort.spark.testing.session import without_warnings_of_pandas
from kohort.spark.testing.store_view import StoreView, stored_as
from kohort.spark.testing.topics import MemoryTopics
from kohort.streams.configured_topology import configure
from kohort.streams.patterns import matching
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark.app import StreamsApp


class RunningApplication:
    """What a test driver has while it runs: topics, a session's settings, an instance.

    Args:
        clock: the time of records that say none (ms since 1970).
        stack: closes all of it.

    Attributes:
        instance: has all tasks.

    Raises:
        ProgramError: the program can't run as it is written, or not with so many partitions.
    """

    def __init__(
        self,
        app: StreamsApp,
        spark: SparkSession,
        partitions: int | Mapping[str, int],
        clock: Callable[[], int],
        stack: contextlib.ExitStack,
    ) -> None:
        self._spark = spark
        with first_job(spark, lambda: False):
            program = app.compile(spark)
        names = () if isinstance(partitions, int) else partitions
        program = with_topics(program, matched_topics(program, set(names) - set(program.sinks)))
        self._topics = MemoryTopics(clock)
        self._read: dict[str, int] = {}
        self._last: dict[str, dict[tuple[int, int], int]] = {}
        self._readers, self._stored = readers_of(program), stored_as(program)
        self._letters = {each.on_error.topic for each in program.sources if isinstance(each.on_error, DeadLetter)}
        tasks = self._create_topics(program, partitions)
        self._created = frozenset(self._topics.names())
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

        self.instance = MemoryInstance(application_plan_of(program), tasks, self._topics, directory, jobs_of, clock)
        stores = self.instance.stores
        rpc = stack.enter_context(RpcServer(stores.lookup, scan=stores.scan, fetch=self._topics.read))
        self._loop = LoopThread("kohort-test-driver")
        stack.callback(self._loop.close)
        stack.callback(lambda: self._loop.run(self.instance.close()))
        self._loop.run(self.instance.start())
        plain_decimals = spark.conf.get("spark.sql.ansi.enabled") == "true"
        self._inputs = {each.topic: InputRows(each, plain_decimals=plain_decimals) for each in program.sources}
        self._partitioners = {each.topic: each.partitioner for each in program.sources}

    def input(self, topic: str) -> InputRows:
        """Makes records of a topic's rows. Raises ValueError."""
        found: InputRows = _found(self._inputs, topic, "topic", "the application reads")
        return found

    def write(self, topic: str, records: pa.Table, partition: int | None) -> None:
        """Write records to a topic. Raises ValueError."""
        of_topic = self._topics.partitions(topic)
        if partition is not None and not 0 <= partition < of_topic:
            raise ValueError(f"topic {topic!r}: partition={partition}, but it has {of_topic}")
        numbers, offsets = self._topics.append(topic, records, partition, self._partitioners[topic])
        places = zip(numbers.tolist(), offsets.tolist(), strict=True)
        self._last[topic] = {place: row for row, place in enumerate(places)}

    def settle(self) -> None:
        """Read all there is, and what comes of it. Raises ApplicationError."""
        with without_warnings_of_pandas():
            self._loop.run(self.instance.settle())

    def row_of(self, error: BadRecordError) -> str:
        """Which row of a test a bad record is."""
        row = self._last.get(error.topic, {}).get((error.partition, error.offset))
        return f"topic {error.topic!r}, " + ("piped before" if row is None else f"row {row} of what was piped last")

    def output(self, topic: str) -> OutputRows:
        """What was written to a topic since this was asked last. Raises ValueError."""
        named = set(self._topics.names()) - self._created if BY_COLUMN in self._readers else set()
        names = {*self._readers, *self._letters, *named} - {BY_COLUMN}
        _found(dict.fromkeys(names, 0), topic, "topic", "the application writes")
        first, self._read[topic] = self._read.get(topic, 0), self._topics.appends(topic)
        records = self._topics.written(topic, first)
        if topic in self._readers or topic in named:
            read = self._readers.get(topic) or self._readers[BY_COLUMN]
            return output_rows(records, read, self._spark)
        return dead_letters(records, self._spark)

    def records(self, topic: str) -> pa.Table:
        """All that a topic has. Raises ValueError."""
        _found(dict.fromkeys(self._topics.names(), 0), topic, "topic", "there")
        return self._topics.written(topic)

    def store(self, name: str) -> StoreView:
        """A store as it is now. Raises ValueError."""
        how = _found(self._stored, name, "store", "the application has")
        rows = [each.scan() for each in self.instance.stores_of(name)]
        return StoreView(how, pa.concat_tables(rows).sort_by("key"))

    def _create_topics(self, program: Program, partitions: int | Mapping[str, int]) -> list[TaskId]:
        """Creates all topics that the application reads and writes; its tasks."""
        names = [*(source.topic for source in program.sources), *program.sinks]
        by_name = dict.fromkeys(names, partitions) if isinstance(partitions, int) else partitions
        for name, count in by_name.items():
            _found(dict.fromkeys(names, 0), name, "topic", "the application reads or writes")
            if count < 1:
                raise ValueError(f"topic {name!r} can't have {count} partitions: one is the least")
        for name in names:
            self._topics.create(name, by_name.get(name, 1))

        def known(name: str) -> int | None:
            return self._topics.partitions(name) if name in self._topics else None

        read = [source.topic for source in program.sources]
        configured = configure(program.topology, known, lambda pattern: matching(pattern, read))
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
