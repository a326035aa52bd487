"""A streams application: where a program begins, and where it is run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from kohort.client.config import Servers
from kohort.extras import SPARK, require
from kohort.notebook_html import PlainText
from kohort.spark.errors import ProgramError
from kohort.spark.internals import leave_out_warning_of_pandas
from kohort.spark.program.column_checks import column_names
from kohort.spark.program.compiled import Program
from kohort.spark.program.error_policies import DeadLetter, Drop, ErrorPolicy
from kohort.spark.program.internal_columns import VALUELESS
from kohort.spark.program.missing_methods import Advised
from kohort.spark.program.notes import described, tell
from kohort.spark.program.queues import Queue, QueueDef, QueueSettings
from kohort.spark.program.registered_outputs import register_outputs, register_schemas
from kohort.spark.program.registries import registry_of, used_registry
from kohort.spark.program.settings import AppSettings, check_name
from kohort.spark.program.source_times import TimestampFormat, event_time_of, time_formats
from kohort.spark.program.source_topics import SourceTopics, source_topics
from kohort.spark.program.sources import Schema, SourceDef, TableDef, known_format
from kohort.spark.program.streams import DerivedTable, GlobalTable, Graph, Stream, Table
from kohort.spark.program.tables import TableTransformDef, unmarked
from kohort.spark.program.topology_outline import outline
from kohort.spark.program.wrong_turns import OF_APPLICATIONS

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from kohort.protocol.records.partitioner import Partitioner
    from kohort.schema_registry.registry import SchemaRegistry
    from kohort.spark.formats.times import TimeFormats
    from kohort.spark.monitoring.events import Listener
    from kohort.spark.program.upgrade_plan import UpgradePlan
    from kohort.spark.queues.compiling import CompiledQueue
    from kohort.spark.running_app import RunningApp
    from kohort.spark.runtime.shutdown import Shutdown
    from kohort.spark.store_frame import StoreFrame

__all__ = ["StreamsApp"]


class _Reading(TypedDict):
    """How a topic's records are read: what streams and tables have in common."""

    schema: Schema | None
    format: str
    on_error: ErrorPolicy | None
    avro_schema: str | None
    times: TimeFormats | None
    partitioner: Partitioner
    registry: SchemaRegistry | Literal[False] | None
    subject: str | None
    delimiter: str | None


class StreamsApp(Advised):
    """A streams application, written in PySpark.

        app = StreamsApp("flight-delays", bootstrap_servers="localhost:9092", num_standby_replicas=1)
        flights = app.stream("flights", schema="origin STRING, dep_delay DOUBLE, at TIMESTAMP", event_time="at")
        by_hour = flights.group_by("origin", window("at", "1 hour"))
        by_hour.aggregate("delays", n=count(), mean=avg("dep_delay")).to("delays-by-hour")
        app.run(spark)

    Each process that runs it is an instance, a member of a streams group of the application's name. The group gives out
    the tasks, moves them when instances come and go, and has copies of their state kept.

    Args:
        application_id: the group's id. Internal topics begin with it.
        bootstrap_servers: addresses ("HOST:PORT,…") or a `ClientConfig`.
        schema_registry: where the schemas of records are, of formats that have registered ones: a `SchemaRegistry`.
        settings: those of `AppSettings`, such as num_standby_replicas, state_dir or application_server.

    Raises:
        ProgramError: a setting that can't be, or isn't one.
    """

    instead = "an application reads topics by stream, table, global_table and queue, and starts with run or start"

    def __init__(
        self,
        application_id: str,
        *,
        bootstrap_servers: Servers = "localhost:9092",
        schema_registry: SchemaRegistry | None = None,
        **settings: Any,
    ) -> None:
        self.settings = AppSettings.of(application_id, bootstrap_servers, **settings)
        self._graph = Graph(registry=registry_of("StreamsApp", schema_registry))
        self._queues: list[QueueDef] = []
        self._runs: list[Shutdown] = []
        self._started: RunningApp | None = None

    # Sources ---------------------------------------------------------------------------------------------------------

    def stream(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        pattern: str | None = None,
        schema: Schema | None = None,
        format: str = "json",  # noqa: A002
        key: str | Sequence[str] | None = None,
        event_time: str | Column | None = None,
        offset_reset: Literal["earliest", "latest"] = "earliest",
        on_error: ErrorPolicy | None = None,
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        partitioner: Literal["murmur2", "crc32"] = "murmur2",
        tombstones: Literal["drop", "keep"] = "drop",
        headers: bool = False,
        topics: bool = False,
        key_format: str | None = None,
        key_schema: Schema | None = None,
        key_subject: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> Stream:
        """A topic's records as rows, or those of several topics that are alike.

        Args:
            topic: its name, or several, as ["orders-eu", "orders-us"]. They must exist, and each is read once: a stream
                may have many branches. A task has its partition of each.
            pattern: instead, an expression that topics' names match as a whole, as "orders-.*", in what RE2 and Java
                have in common. When a topic comes that it matches, instances start again by themselves, and read it
                from its beginning. Groups of `kohort serve` take patterns, Apache Kafka doesn't yet.
            schema: the value's columns, as DDL ("origin STRING, dep_delay DOUBLE") or StructType. Columns that a record
                lacks are null, what else it has isn't read. `_timestamp TIMESTAMP` among them is the record's own
                timestamp. "string" and "raw" have one column, by default `value`. Where a registry has the schema, that
                has the columns, and `schema` chooses some of them.
            format: of the value: "json", "avro", "csv", "json_schema", "protobuf", "string" or "raw". Avro is plain, or
                has an id of a registered schema in each value; "json_schema" and "protobuf" always have one: see
                `schema_registry`.
            key: the columns that the records' keys hold: of one its text, of several a JSON object. Say it if you group
                or join by these: the records are where they belong then. It is checked that they are.
            event_time: a TIMESTAMP column; or one that is made of a number since 1970 and added to the rows, as
                `F.timestamp_millis("dateTime").alias("at")`, also as text ("timestamp_millis(dateTime) AS at"), or with
                timestamp_seconds or timestamp_micros. By default a record's time is its timestamp.
            offset_reset: where to begin in partitions of which the group has committed nothing.
            on_error: what becomes of records that can't be decoded, or aren't where their keys belong: Fail(), Drop()
                or DeadLetter("a topic"). By default the application's.
            avro_schema: the one that Avro values were written with, as JSON, where `schema` doesn't say it. With
                `schema_registry=` here: the one to read them as, instead of the subject's newest.
            timestamp_format: how JSON has its TIMESTAMP columns: one for all, or by column ("order.at" in a struct).
                "timestamp_seconds", "timestamp_millis" and "timestamp_micros" are numbers since 1970, others Spark's
                patterns, as "yyyy-MM-dd HH:mm:ss". By default ISO 8601.
            time_zone: of texts that don't say theirs: "America/New_York", "+02:00". By default UTC.
            partitioner: how the topic's producers find a key's partition: "murmur2", as Kafka's Java client and most
                others, or "crc32", as librdkafka (confluent-kafka) by default.
            tombstones: what becomes of records without a value: "drop" leaves them out and counts them, "keep" makes
                rows of nulls of them, but for the columns of their keys (`key_format`).
            headers: whether rows have the records' headers, as the column `_headers`, which is an ARRAY of STRUCTs with
                a `key`, STRING, and a `value`, BINARY.
            topics: whether rows have the topic that they are from, as the column `_topic`, a STRING.
            key_format: of the records' keys, whose columns rows have then, too: as of values. Of "string" it is the
                column `key`, which the stream is keyed by; others are found by their bytes, so rows move before they
                are aggregated. With an application's or the stream's registry Avro keys have an id.
            key_schema: the columns of the keys. Those of a record without a key are null. A single column of Avro may
                have a schema that is no record's, as "long".
            key_subject: the one that has the keys' schema where `key_schema` doesn't; by default `{topic}-key`.
            schema_registry: where the schemas are whose ids the values have; by default the application's, if
                `avro_schema` isn't given. False for plain Avro beside it.
            subject: the one that has the schema to read values as; by default `{topic}-value`, of the first topic. Its
                newest version counts, as it is when the program is compiled.
            delimiter: between the fields of CSV, whose names are those of `schema`, in their order; by default a comma.

        Raises:
            ProgramError: arguments that can't be, or a topic that is read already.
        """
        read = source_topics(topic, pattern)
        where = f"stream {read.name!r}"
        event_time, derived = event_time_of(where, event_time)
        columns = () if key is None else column_names(f"{where}: key", key)
        source = self._source(
            "stream", read, columns, schema=schema, format=format, on_error=on_error, avro_schema=avro_schema,
            times=time_formats(where, format, timestamp_format, time_zone), partitioner=partitioner,
            registry=schema_registry, subject=subject, delimiter=delimiter,
        )  # fmt: skip
        if tombstones not in ("drop", "keep"):
            raise ProgramError(f'{where}: tombstones={tombstones!r}: "drop" or "keep"')
        source.tombstones, source.headers, source.topics_shown = tombstones == "keep", bool(headers), bool(topics)
        self._keys(where, source, key_format, key_schema, key_subject, schema_registry)
        if offset_reset not in ("earliest", "latest"):
            raise ProgramError(f'{where}: offset_reset={offset_reset!r}: "earliest" or "latest"')
        source.event_time, source.derived, source.offset_reset = event_time, derived, offset_reset
        self._graph.sources.append(source)
        return Stream(self._graph, source)

    @overload
    def table(
        self,
        topic: str,
        *,
        key: str | Sequence[str],
        schema: Schema | None = None,
        format: str = "json",
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        partitioner: Literal["murmur2", "crc32"] = "murmur2",
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> Table: ...

    @overload
    def table(
        self,
        topic: str,
        *,
        key: str | Sequence[str],
        schema: Schema | None = None,
        format: str = "json",
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        partitioner: Literal["murmur2", "crc32"] = "murmur2",
        key_format: str,
        key_schema: Schema | None = None,
        key_subject: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> DerivedTable: ...

    def table(
        self,
        topic: str,
        *,
        key: str | Sequence[str],
        schema: Schema | None = None,
        format: str = "json",  # noqa: A002
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        partitioner: Literal["murmur2", "crc32"] = "murmur2",
        key_format: str | None = None,
        key_schema: Schema | None = None,
        key_subject: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> Table | DerivedTable:
        """A topic's last record of each key, kept by tasks: each has those of its partition.

        Args:
            topic: its name. A record without a value deletes its key's.
            key: the columns that are the key: the topic must be partitioned by them.
            schema: the value's columns, as of a stream. The key's are among them.
            format: of the value, as of a stream.
            name: of the store; by default the topic's.
            on_error, avro_schema, partitioner: as of a stream.
            key_format, key_schema, key_subject: as of a stream, where keys are neither text nor JSON objects. `key` is
                all columns of the keys then, which aren't in the values. Such records lie where the keys' bytes lead
                to, so they go through a topic by these columns, `{app}-{name}-repartition`, but where keys are
                "string"; a stream that is joined with the table does, too. No store has such a table: it can't be
                asked, and has to go somewhere, as to a topic, a group or a join.
            timestamp_format, time_zone, schema_registry, subject, delimiter: as of a stream.

        Raises:
            ProgramError: arguments that can't be, or a topic or a name that is taken.
        """
        where = f"table {topic!r}"
        if key_format is not None:
            columns = column_names(f"{where}: key", key)
            source = self._source(
                "table", SourceTopics(check_name("table(topic)", topic)), (), schema=schema, format=format,
                on_error=on_error, avro_schema=avro_schema, partitioner=partitioner, registry=schema_registry,
                subject=subject, delimiter=delimiter, times=time_formats(where, format, timestamp_format, time_zone),
            )  # fmt: skip
            source.tombstones, source.table_key = True, columns
            self._keys(where, source, key_format, key_schema, key_subject, schema_registry)
            self._graph.sources.append(source)
            table = Stream(self._graph, source).to_table(*columns, deleted=VALUELESS, name=name)
            return table._derived(TableTransformDef(f"key_format={key_format!r}", unmarked))
        if key_schema is not None or key_subject is not None:
            raise ProgramError(f'{where}: say in which format the keys are, as key_format="avro"')
        definition = self._table(
            "table", topic, key, name, schema=schema, format=format, on_error=on_error, avro_schema=avro_schema,
            times=time_formats(where, format, timestamp_format, time_zone), partitioner=partitioner,
            registry=schema_registry, subject=subject, delimiter=delimiter,
        )  # fmt: skip
        return Table(self._graph, definition)

    def global_table(
        self,
        topic: str,
        *,
        key: str | Sequence[str],
        schema: Schema | None = None,
        format: str = "json",  # noqa: A002
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> GlobalTable:
        """A topic's last record of each key, all of them on every instance: for small tables, joined to any stream.

        Args and errors are those of `table`; it makes no difference how the topic is partitioned.
        """
        definition = self._table(
            "global_table", topic, key, name, schema=schema, format=format, on_error=on_error, avro_schema=avro_schema,
            times=time_formats(f"global_table {topic!r}", format, timestamp_format, time_zone), partitioner="murmur2",
            registry=schema_registry, subject=subject, delimiter=delimiter,
        )  # fmt: skip
        return GlobalTable(self._graph, definition)

    def queue(
        self,
        topic: str,
        *,
        schema: Schema | None = None,
        format: str = "json",  # noqa: A002
        dead_letters: str | None = None,
        max_deliveries: int = 4,
        max_records: int = 500,
        acquire_mode: Literal["record_limit", "batch_optimized"] = "record_limit",
        lock_ms: int | None = None,
        processing_timeout_ms: int = 300_000,
        offset_reset: Literal["earliest", "latest"] | None = "earliest",
        avro_schema: str | None = None,
        timestamp_format: TimestampFormat | None = None,
        time_zone: str | None = None,
        headers: bool = False,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        delimiter: str | None = None,
    ) -> Queue:
        """A topic's records as work for any number of workers, more than it has partitions: see docs/queues.md.

            jobs = app.queue("images", schema="id STRING, url STRING", dead_letters="images-dead")
            jobs.with_columns(outcome=resized("url")).process(outcome="outcome")

        Each worker runs the application; all are members of a share group, which has the application's id. An
        application has queues or streams, not both. Takes `kohort serve` or Apache Kafka 4.2.

        Args:
            topic: its name. It must exist.
            schema, format, avro_schema, timestamp_format, time_zone, headers, schema_registry, subject, delimiter: as
                of `stream`. Rows have `_delivery_count`, too, and `_partition` and `_offset`.
            dead_letters: the topic that gets what is rejected, as it was read, with the reason and its origin in
                headers; at least once. None: it is counted.
            max_deliveries: so often a record is handed out at most: one that is released then is rejected. Less than
                the group's `share.delivery.count.limit` (5): brokers drop what is released at that, without a letter.
            max_records: the most of an epoch. Its result has to fit into the driver's memory.
            acquire_mode: "record_limit": brokers lock no more than `max_records` for a worker, and none ahead;
                "batch_optimized": whole batches, also ahead, which is faster and less even.
            lock_ms: how long brokers lock records: set as the group's `share.record.lock.duration.ms` at the start.
                None leaves that as it is. Locks are renewed while a job runs.
            processing_timeout_ms: how long they are. Job and functions together have so long; what isn't done by then
                is cancelled, and its records are released.
            offset_reset: where a new group begins: set as its `share.auto.offset.reset` at the start. None leaves that
                as it is, by default at the end.

        Raises:
            ProgramError: arguments that can't be, or a topic that is read already.
        """
        where = f"queue {topic!r}"
        source = self._source(
            "queue", SourceTopics(check_name("queue(topic)", topic)), (),
            schema=schema, format=format, on_error=Drop(), avro_schema=avro_schema,
            times=time_formats(where, format, timestamp_format, time_zone), partitioner="murmur2",
            registry=schema_registry, subject=subject, delimiter=delimiter,
        )  # fmt: skip
        source.headers = bool(headers)
        if any(each.source.topic == topic for each in self._queues):
            raise ProgramError(f"topic {topic!r} is read twice: it is a queue already")
        settings = QueueSettings(
            dead_letters=dead_letters, max_deliveries=max_deliveries, max_records=max_records,
            acquire_mode=acquire_mode, lock_ms=lock_ms, processing_timeout_ms=processing_timeout_ms,
            offset_reset=offset_reset,
        )  # fmt: skip
        settings.check(where, topic)
        definition = QueueDef(source, settings, self._graph.registry)
        self._queues.append(definition)
        return Queue(definition)

    # Compiling and running -------------------------------------------------------------------------------------------

    def compile(self, spark: SparkSession | None = None) -> Program:
        """The program as data, checked as far as that can be done without the cluster.

        Args:
            spark: the session; by default the active one, or a new one.

        Raises:
            ProgramError: it can't run as it is written; says what is wrong and what to write instead.
        """
        from kohort.spark.program.compiler import compile_program

        return compile_program(self._graph, self.settings, _session(spark))

    def compile_queues(self, spark: SparkSession | None = None) -> tuple[CompiledQueue, ...]:
        """The queues as data, checked as far as that can be done without the cluster.

        Raises:
            ProgramError: as of `compile`, or there are streams beside them.
        """
        from kohort.spark.queues.compiling import compile_queues

        if self._graph.sources:
            raise ProgramError(
                "an application has streams or queues, not both: a group of its name is a streams group or a share "
                "group. Make another StreamsApp for the queues"
            )
        return compile_queues(self._queues, _session(spark))

    def describe(self, spark: SparkSession | None = None) -> PlainText:
        """The topology, as Kafka Streams prints it: sub-topologies with their sources, processors, stores and sinks.

        It is text, which a notebook shows in its lines.

        Raises:
            ProgramError: as of `compile`.
        """
        if self._queues:
            from kohort.spark.queues.compiling import describe_queues

            return PlainText(describe_queues(self.settings.application_id, self.compile_queues(spark)))
        from kohort.spark.program.topology_description import describe

        return PlainText(describe(self.compile(spark)))

    def plan_upgrade(self, spark: SparkSession | None = None) -> UpgradePlan:
        """What becomes of the application's state if this program goes on with it. Changes nothing, and joins nothing.

            print(app.plan_upgrade())

        Each store is kept, extended by columns that begin with nothing, rebuilt from its topic, new, left, or refused.

        Raises:
            ProgramError: as of `compile`.
            KafkaError, ClientError: the cluster can't be asked.
        """
        from kohort.spark.program.upgrade_plan import plan_of

        return plan_of(self.compile(spark), self.settings.client)

    def run(
        self, spark: SparkSession | None = None, *, listeners: Sequence[Listener] = (), progress: bool = True
    ) -> None:
        """Runs an instance of the application until SIGINT or SIGTERM, until `stop`, or until it fails.

        Signals are handled in the main thread only. In a notebook, interrupting the cell does the same.

        Args:
            spark: the session; by default the active one, or a new one.
            listeners: receive each epoch, and all that happens to tasks. Queues have neither.
            progress: whether to show that: on a terminal in a line that changes, else in plain lines on standard error.

        Raises:
            ProgramError: the program can't run, or not under this application id, or a schema can't be registered; it
                hasn't joined the group then.
            ApplicationError: it can't go on: a record can't be read and the program says `Fail`, a job fails for good,
                or the port of `application_server` is in use. Says what, and what can be done.
            StateDirectoryError: another process uses the state directory, or it can't be written.
            KafkaError, ClientError: the group won't have the instance, or no broker was found within
                `bootstrap_timeout_ms`, if that is set.
        """
        require("spark", "running a streams application", SPARK)
        from kohort.client.errors import AuthenticationError, NoBrokerError
        from kohort.spark.runtime.shutdown import Shutdown
        from kohort.spark.state.errors import StateDirectoryError

        stopping = Shutdown()
        self._runs.append(stopping)
        try:
            self._run(spark, listeners, progress, stopping)
        # What these say is the whole of it: frames between the program's line and the check would only hide that.
        except ProgramError as error:
            raise error.with_traceback(None) from error.__cause__  # which may be in a function of the user's
        except (StateDirectoryError, NoBrokerError, AuthenticationError) as error:
            raise error.with_traceback(None) from None

    def start(self, spark: SparkSession | None = None, *, listeners: Sequence[Listener] = ()) -> RunningApp:
        """Runs an instance in the background, as in a notebook, until its `stop`, or the process ends.

            running = app.start(spark)
            running.live()

        Returns at once: what it fails with is logged, and raised by `stop` and `wait` of what is returned.

        Args:
            spark: the session; by default the active one, or a new one, which starts once the topics are there.
            listeners: as of `run`.

        Raises:
            ProgramError: an instance of the application runs in this process already.
        """
        require("spark", "running a streams application", SPARK)
        from kohort.spark.running_app import RunningApp
        from kohort.spark.runtime.shutdown import Shutdown

        stopping = Shutdown()
        running = RunningApp(self.settings.application_id, stopping.ask, queues=bool(self._queues))
        told = [running.overview, running.listener, *listeners]
        # Asked here: which session is active is another question in another thread.
        run = functools.partial(self._run, _active(spark), told, False, stopping, running)
        self._runs.append(stopping)
        try:
            running.begin(run)
        except BaseException:
            self._runs.remove(stopping)
            raise
        self._started = running
        return running

    def _run(
        self,
        spark: SparkSession | None,
        listeners: Sequence[Listener],
        progress: bool,
        stopping: Shutdown,
        running: RunningApp | None = None,
    ) -> None:
        """Runs it until it has ended; `running` is told what is run."""
        from kohort.spark.internals import stop_progress_bar
        from kohort.spark.monitoring.start_lines import StartLines
        from kohort.spark.program.topics_there import topics_of
        from kohort.spark.runtime.first_look import topics_are_there

        name, client = self.settings.application_id, self.settings.client
        lines = StartLines(name, shown=progress, listeners=listeners)
        try:
            # First what may well be wrong and is quickly found out: Spark, and loading what uses it, takes its time.
            if not topics_are_there(name, topics_of(self._graph, self._queues), client, stopping, lines.waiting):
                return
            if _active(spark) is None:
                lines.doing("starting Spark")
            session = _session(spark)
            from kohort.spark.jobs.first_job import first_job
            from kohort.spark.runtime.application import run_application
            from kohort.spark.runtime.topic_watch import run_with_topics

            lines.doing("compiling the program")
            # Of each epoch it would be in whatever cell is the latest, and in a file it is a line without an end.
            if running is not None or not sys.stderr.isatty():
                stop_progress_bar(session)
            if self._queues:
                from kohort.spark.queues.running import run_queues

                queues = self.compile_queues(session)
                register_outputs(output for queue in queues for output in queue.outputs)
                counted = {} if running is None else {"counted": running.counted}
                run_queues(session, queues, self.settings, progress=progress, stopping=stopping, **counted)
                return
            with first_job(session, lambda: stopping.asked):
                program = self.compile(session)
                lines.doing("compiled; Spark ends its first job")
            if running is not None:
                running.compiled(outline(program))
            if not stopping.asked:
                tell(program.application_id, program.notes)
                register_schemas(program)
                run = functools.partial(
                    run_application, session, settings=self.settings, listeners=listeners, progress=progress,
                    stopping=stopping,
                )  # fmt: skip
                run_with_topics(program, client, run, stopping)
        finally:
            self._runs.remove(stopping)

    def store(self, name: str) -> StoreFrame:
        """A store of the program, to be read as a DataFrame: `app.store("delays").read(spark)`.

        Args:
            name: of an aggregate or a table.
        """
        from kohort.spark.store_frame import StoreFrame

        return StoreFrame(self.compile, self.settings.client, name)

    def stop(self) -> None:
        """Ends `run`, from any thread, as SIGTERM does: the epoch is finished, tasks are handed over, `run` returns.

        It doesn't wait for that. If nothing runs it does nothing, and a later run isn't affected.
        """
        for stopping in tuple(self._runs):
            stopping.ask()

    def _advice(self, name: str) -> str:
        return OF_APPLICATIONS.get(name) or super()._advice(name)

    def __repr__(self) -> str:
        return f"StreamsApp({self.settings.application_id!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the instance that `start` gave, or what the program is made of."""
        if self._started is not None:
            return self._started._repr_html_()
        from pyspark.sql import SparkSession

        from kohort.spark.app_html import application_page

        session, name = SparkSession.getActiveSession(), self.settings.application_id
        if session is None:
            return application_page(name, (), "Its topology is shown once there is a Spark session.")
        try:
            if self._queues:
                return application_page(name, (), self.describe(session))
            program = self.compile(session)
        except ProgramError as error:
            return application_page(name, (), f"It can't run as it is written: {error}")
        notes = described(program.notes)
        return application_page(name, outline(program), *([PlainText(notes)] if notes else []))

    # -----------------------------------------------------------------------------------------------------------------

    def _table(
        self, what: str, topic: str, key: str | Sequence[str], name: str | None, **reading: Unpack[_Reading]
    ) -> TableDef:
        columns = column_names(f"{what} {topic!r}: key", key)
        source = self._source(what, SourceTopics(check_name(f"{what}(topic)", topic)), columns, **reading)
        definition = TableDef(check_name(f"{what} {topic!r}: name", name or topic), source, what == "global_table")
        self._graph.sources.append(definition)
        return definition

    def _keys(
        self,
        where: str,
        source: SourceDef,
        key_format: str | None,
        schema: Schema | None,
        subject: str | None,
        registry: SchemaRegistry | Literal[False] | None,
    ) -> None:
        if key_format is None:
            if schema is not None or subject is not None:
                raise ProgramError(f'{where}: say in which format the keys are, as key_format="avro"')
            return
        known_format(f"{where}: key_format", key_format)
        if key_format == "csv":
            raise ProgramError(f"{where}: keys aren't read as CSV: read them as text, and split that in a transform")
        if source.key and key_format not in ("string", "json"):
            raise ProgramError(
                f"{where}: key={source.key!r} says that records lie where these columns lead to as text, and with "
                f"key_format={key_format!r} they lie where the key's bytes lead to: leave key= out"
            )
        others = None if registry is False else registry or self._graph.registry
        source.key_format, source.key_schema, source.key_subject = key_format, schema, subject
        source.key_registry = used_registry(f"{where}: key_format", key_format, None, others)

    def _source(self, what: str, read: SourceTopics, key: tuple[str, ...], **reading: Unpack[_Reading]) -> SourceDef:
        schema, format, on_error = reading["schema"], reading["format"], reading["on_error"]  # noqa: A001
        avro_schema, registry, subject = reading["avro_schema"], reading["registry"], reading["subject"]
        partitioner, delimiter = reading["partitioner"], reading["delimiter"]
        where = f"{what} {read.name!r}"
        known_format(where, format)
        others = None if registry is False or avro_schema is not None else self._graph.registry
        named = used_registry(where, format, registry or None, others)
        if subject is not None and named is None:
            raise ProgramError(
                f'{where}: subject={subject!r} is one of a registry: say schema_registry=…, and format="avro"'
            )
        if read.pattern and named is not None and (schema, avro_schema, subject) == (None, None, None):
            raise ProgramError(f"{where}: no one topic's subject has the schema: say subject=…, or schema=…")
        if schema is None and format in ("json", "avro", "csv") and named is None:
            raise ProgramError(f'{where}: say the columns, as schema="origin STRING, dep_delay DOUBLE"')
        if avro_schema is not None and format != "avro":
            raise ProgramError(f'{where}: avro_schema is for format="avro", not "{format}"')
        if delimiter is not None and format != "csv":
            raise ProgramError(f'{where}: delimiter is for format="csv", not "{format}"')
        if partitioner not in ("murmur2", "crc32"):
            raise ProgramError(
                f'{where}: partitioner={partitioner!r}: "murmur2" or "crc32". Where it is partitioned in another way, '
                f"say .repartition(…)"
            )
        policy = self.settings.on_error if on_error is None else on_error
        if not isinstance(policy, ErrorPolicy):
            raise ProgramError(f'{where}: on_error={on_error!r}: give Fail(), Drop() or DeadLetter("a topic")')
        if isinstance(policy, DeadLetter):
            check_name(f"{where}: DeadLetter(topic)", policy.topic)
            if policy.topic in read.named:
                raise ProgramError(f"{where}: its dead letters can't go to the topic itself: they would come back")
        for each in self._graph.sources:
            source = each.source if isinstance(each, TableDef) else each
            there = {source.topic, *source.others}
            for topic in sorted(there & {read.name, *read.others}):
                kind = "a table" if isinstance(each, TableDef) else "a stream"
                raise ProgramError(
                    f"topic {topic!r} is read twice: it is {kind} already. Keep what app.stream or app.table gave "
                    f"and use it as often as you like: each use is a branch of its own"
                )
        return SourceDef(
            read.name, schema, format, key, None, "earliest", policy, avro_schema, others=read.others,
            pattern=read.pattern, times=reading["times"], partitioner=partitioner, registry=named, subject=subject,
            delimiter=delimiter,
        )  # fmt: skip


def compiled(application: StreamsApp, spark: SparkSession | None = None) -> Program | tuple[CompiledQueue, ...]:
    """What an application is compiled to, whether it has streams or queues. Raises as `StreamsApp.compile` does."""
    return application.compile_queues(spark) if application._queues else application.compile(spark)


def _session(spark: SparkSession | None) -> SparkSession:
    leave_out_warning_of_pandas()
    if (active := _active(spark)) is not None:
        return active
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _active(spark: SparkSession | None) -> SparkSession | None:
    """The session that is given, or else the active one; None if there is none yet."""
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
