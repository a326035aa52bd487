"""A program as data: what `StreamsApp.compile` makes of it, and the runtime runs.

A program is made of subtopologies. Each reads one topic, or one topic and the tables that are joined to it, or both
sides of a join of streams, and runs as one task for each partition. What it does with a record is a tree, kept as its
*branches*: each goes from the input over steps to a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.program.emission import Emit
from kohort.spark.program.error_policies import DeadLetter, ErrorPolicy
from kohort.spark.program.internal_columns import (
    DELETED,
    HEADERS,
    OFFSET,
    PARTITION,
    STREAM_TIME,
    TIMESTAMP,
    TOPIC,
    VALUELESS,
)
from kohort.spark.program.notes import Note
from kohort.spark.program.processor_specs import Process
from kohort.spark.program.record_keys import KeyReading, KeyWriting
from kohort.spark.program.windows import SessionSpec, WindowSpec
from kohort.streams.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from kohort.protocol.records.partitioner import Partitioner
    from kohort.spark.formats.csv_format import CsvFields
    from kohort.spark.formats.derived_times import DerivedTime
    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import RegistryReading
    from kohort.spark.formats.times import TimeFormats
    from kohort.spark.program.aggregates import Aggregation


class Route(StrEnum):
    """How a record's key holds the columns that it is partitioned by, before murmur2 makes a partition of it."""

    JSON = "json"
    """A JSON object: `{"origin":"JFK"}`."""
    TEXT = "text"
    """Of one column, its text: `JFK`, as `cast(… as string)` writes it. Of several, a JSON object."""


# Sources and stores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceSpec:
    """A topic that somebody else writes, and what is in its records.

    Attributes:
        schema: the rows' columns, without `_partition`: the value's, and `derived` ones.
        format: "json", "avro", "string" or "raw".
        key: columns by which the topic is partitioned (`Route.TEXT`); () for not known.
        event_time: a TIMESTAMP column of the schema; None for the record's own timestamp.
        offset_reset: where to begin without a committed offset: "earliest" or "latest".
        avro_schema: the writer's, as JSON, of all that is in a value, however little of it is read; None if the format
            isn't Avro.
        times: how JSON has times; None for ISO 8601 in UTC.
        derived: columns of the schema that aren't in the values.
        partitioner: how a key's bytes become a partition of it: "murmur2" or "crc32".
        tombstones: whether records of a stream that have no value are rows of nulls; otherwise they are left out.
        headers: whether the schema has `_headers`, which aren't in the values.
        registry: how values are read that have the id of a registered schema; None for values without.
        csv: what is in a record of CSV.
        others: topics that are read with it, alike.
        pattern: whether `topic` is a pattern of topics' names. `others` are those it matches, as far as they are known.
        topics_shown: whether the schema has `_topic`, which isn't in the values.
        key_read: how the columns of the records' keys are read, which aren't in the values either; None for none.
        valueless: whether the schema has `_valueless`, which isn't in the values.
    """

    topic: str
    schema: StructType
    format: str
    key: tuple[str, ...]
    event_time: str | None
    offset_reset: str
    on_error: ErrorPolicy
    avro_schema: str | None = None
    times: TimeFormats | None = None
    derived: tuple[DerivedTime, ...] = ()
    partitioner: Partitioner = "murmur2"
    tombstones: bool = False
    headers: bool = False
    registry: RegistryReading | None = None
    csv: CsvFields | None = None
    others: tuple[str, ...] = ()
    pattern: bool = False
    topics_shown: bool = False
    key_read: KeyReading | None = None
    valueless: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that it is."""
        return self.others if self.pattern else (self.topic, *self.others)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of the schema that are made of records, not of what is in their values."""
        shown = {HEADERS: self.headers, TOPIC: self.topics_shown, VALUELESS: self.valueless}
        keys = () if self.key_read is None else self.key_read.columns
        return (*(each.name for each in self.derived), *(name for name, is_shown in shown.items() if is_shown), *keys)

    def each(self) -> Iterator[SourceSpec]:
        """One for each of its topics."""
        return (replace(self, topic=topic, others=(), pattern=False) for topic in self.topics)


@dataclass(frozen=True)
class TableStore:
    """A table: the last record of each key. `changelog` is None for a global table, whose topic is its changelog."""

    name: str
    source: SourceSpec
    changelog: str | None

    @property
    def is_global(self) -> bool:
        """Whether every instance has all of it."""
        return self.changelog is None


@dataclass(frozen=True)
class Store:
    """A subtopology's state store, whatever is in it: its name and its changelog."""

    name: str
    changelog: str


# Inputs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicInput:
    """A topic of the user's is read, or several that are alike.

    Attributes:
        upserts: whether it is read as a table's: its rows have `_deleted`, and records without a value are such.
    """

    source: SourceSpec
    upserts: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics' names."""
        return self.source.topics

    @property
    def schema(self) -> StructType:
        """The rows' columns, without the internal ones that all have."""
        return with_deleted(self.source.schema) if self.upserts else self.source.schema

    @property
    def event_time(self) -> str | None:
        """A TIMESTAMP column of the schema, or None for the record's timestamp."""
        return self.source.event_time


@dataclass(frozen=True)
class RowsInput:
    """Rows are read that another subtopology has repartitioned.

    Attributes:
        topic: the repartition topic.
        schema: the rows' columns, without `_partition`.
        key: columns by which they are partitioned (`Route.TEXT`).
        event_time: a TIMESTAMP column of the schema, or None for the record's timestamp, which is the event time too.
        partitions: how many; 0 leaves it to the group's coordinator.
        encoded: whether values are in encoded types; else they are JSON as topics show it, of an aggregate's groups.
        upserts: of groups that are read as a table's, the columns of their keys; the schema has `_deleted` then.
    """

    topic: str
    schema: StructType
    key: tuple[str, ...]
    event_time: str | None = None
    partitions: int = 0
    encoded: bool = True
    upserts: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic's name."""
        return (self.topic,)


@dataclass(frozen=True)
class PartialsInput:
    """Partial aggregates are read; the one branch has no steps and ends in `Aggregate`."""

    topic: str
    aggregate: AggregateSpec

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic's name."""
        return (self.topic,)


@dataclass(frozen=True)
class InputSide:
    """One side of a join whose rows are read where they lie.

    Attributes:
        source: its topic.
        branch: what makes rows of the join's input of the topic's; its end, `ToRows`, says which column is the event
            time. It names no topic, since nothing goes through one.
    """

    source: SourceSpec
    branch: Branch

    @property
    def event_time(self) -> str | None:
        """The column of the join's input that is the event time, or None for the record's timestamp."""
        assert isinstance(self.branch.terminal, ToRows)
        return self.branch.terminal.event_time


@dataclass(frozen=True)
class SidesInput:
    """Both sides of a join of streams are read where they lie: of two topics that are partitioned alike.

    A task's rows are in one order: those of the left side's topic before the right one's, as an epoch reads them. So
    `_offset` counts on over both, and goes up from one epoch to the next.

    Attributes:
        sides: the left one and the right one.
        schema: the rows' columns, without `_partition`.
        key: columns of the topics' keys, as the join calls them.
        null_keys: whether rows of records without a key are read too, if the columns of their keys are null.
    """

    sides: tuple[InputSide, InputSide]
    schema: StructType
    key: tuple[str, ...]
    null_keys: bool = False

    @property
    def sources(self) -> tuple[SourceSpec, ...]:
        """What is read."""
        return tuple(side.source for side in self.sides)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics' names."""
        return tuple(source.topic for source in self.sources)

    @property
    def event_time(self) -> None:
        """Each row's is that of its side: see `InputSide.event_time`."""
        return


Input = TopicInput | RowsInput | PartialsInput | SidesInput


def with_deleted(schema: StructType) -> StructType:
    """The columns of a table's upserts: with `_deleted`."""
    from pyspark.sql.types import BooleanType, StructField, StructType

    return StructType([*schema.fields, StructField(DELETED, BooleanType())])


# Steps ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transform:
    """A function of the user's. It is called whenever a plan is built, and must give the same plan each time."""

    function: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Join:
    """Columns of the table are added to each row.

    Attributes:
        table: what is joined.
        on: the rows' columns that are the table's key, in its order.
        how: "inner" (rows without a match go) or "left" (they stay, with nulls).
        is_global: whether the table is looked up in the global store, not in the task's.
        columns: of the table, which are added, and what they are called then; None: all but its key's, as they are.
    """

    table: TableStore
    on: tuple[str, ...]
    how: str
    is_global: bool
    columns: tuple[tuple[str, str], ...] | None = None

    @property
    def added(self) -> tuple[tuple[str, str], ...]:
        """The table's columns that are added, and what they are called then."""
        if self.columns is not None:
            return self.columns
        source = self.table.source
        return tuple((name, name) for name in source.schema.names if name not in source.key)


@dataclass(frozen=True)
class Peek:
    """A function of the user's sees the rows, as Arrow tables, on executors."""

    function: Callable[[Any], object]


Step = Transform | Peek | Join | Process


# Aggregates ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrowAggregation:
    """A function of the user's over (rows, prior state) of many keys at once, as Arrow tables.

    Attributes:
        function: `fn(rows, prior) -> state`. `prior` has the key columns and the state columns of the touched keys that
            exist; the result has the same columns, one row for each touched key.
        state: the state columns, which are the output too.
        rows: the columns of `rows`: the stream's, without `_partition`; with a window, `window` (TIMESTAMP) before
            them.
    """

    function: Callable[[Any, Any], Any]
    state: StructType
    rows: StructType


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate: by which columns, of what, in which windows, and when it is written.

    Attributes:
        name: of its store and topics.
        group: columns that are grouped by, with their types, without the window.
        window: None for no windows.
        aggregations: by the output column's name; () with `arrow`.
        emit: "update": after each epoch, what changed. "close": once, when the window is closed. Or once in a time.
        changelog: the changelog topic.
        event_time: the TIMESTAMP column that stream time comes from; None: the record's timestamp.
        arrow: a function instead of `aggregations`.
        state_columns: what is kept, in Spark's types.
        output_columns: what comes out beside the key, in Spark's types.
        route: how the key of the subtopology's input holds the columns of `routed_by`, to find a key's partition.
        routed_by: the columns of `group`, in the order in which they are in that key.
        route_names: what they are called there; () for the same.
        signed: whether it is of a table's rows, which leave, too: `_sign` says which. A group without any is deleted.
    """

    name: str
    group: tuple[tuple[str, DataType], ...]
    window: WindowSpec | SessionSpec | None
    aggregations: tuple[tuple[str, Aggregation], ...]
    emit: Emit
    changelog: str
    event_time: str | None
    arrow: ArrowAggregation | None
    state_columns: tuple[tuple[str, DataType], ...]
    output_columns: tuple[tuple[str, DataType], ...]
    route: Route
    routed_by: tuple[str, ...]
    route_names: tuple[str, ...] = ()
    signed: bool = False

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the columns that are grouped by, without the window."""
        return tuple(name for name, _ in self.group)

    @property
    def by_sign(self) -> bool:
        """Whether rows that come in and rows that leave are aggregated by themselves first."""
        return any(aggregation.by_sign for _, aggregation in self.aggregations)

    @property
    def by_offset(self) -> bool:
        """Whether rows need `_offset`."""
        return any(aggregation.by_offset for _, aggregation in self.aggregations)

    @property
    def heap_bytes(self) -> int:
        """About how much of the JVM's heap a group takes while it is aggregated."""
        return sum(aggregation.heap_bytes for _, aggregation in self.aggregations)

    @property
    def shown_columns(self) -> StructType:
        """The columns of outputs: the window's start and end, as far as there are such, the group's, the results."""
        from pyspark.sql.types import StructField, StructType, TimestampType

        window = self.window
        names = [] if window is None else ["window", *([] if window.end is None else [window.end])]
        times = [StructField(name, TimestampType()) for name in names]
        return StructType([*times, *(StructField(name, kind) for name, kind in (*self.group, *self.output_columns))])

    def partial_columns(self) -> list[Column]:
        """Aggregate expressions over rows that give the state columns, by name and in their types.

        The rows have `_offset` (null for unknown) if `by_offset`.
        """
        return self._typed([each for name, aggregation in self.aggregations for each in aggregation.partial(name)])

    def merge_columns(self) -> list[Column]:
        """Aggregate expressions over the state columns that give the state columns, by name and in their types."""
        return self._typed([each for name, aggregation in self.aggregations for each in aggregation.merge(name)])

    def settled_columns(self) -> dict[str, Column]:
        """Expressions for the state columns that change once more when the store's state is merged, too, over the
        merged ones, by name and in their types: see `Aggregation.settled`.
        """
        types = dict(self.state_columns)
        settled = [each for name, aggregation in self.aggregations for each in aggregation.settled(name)]
        return {name: column.cast(types[name]) for name, column in settled}

    def finish_columns(self) -> list[Column]:
        """Expressions over the merged state columns that give the output columns, by name and in their types."""
        types = dict(self.output_columns)
        own = [(name, aggregation) for name, aggregation in self.aggregations if name in types]
        return [aggregation.finish(name).cast(types[name]).alias(name) for name, aggregation in own]

    def _typed(self, columns: list[tuple[str, Column]]) -> list[Column]:
        types = dict(self.state_columns)
        return [column.cast(types[name]).alias(name) for name, column in columns]


# Terminals -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToTopic:
    """Rows, or an aggregate's groups, become records of a topic of the user's.

    Attributes:
        key: columns that make the record's key (`Route.TEXT`); None for no key, of an aggregate for the store's.
        format: of the value: one of `kohort.spark.formats.FORMATS`.
        columns: those that make the value: of "string" and "raw" just one. Of an aggregate's JSON: (), for all.
        avro_schema: the value's, as JSON; None for the one that follows from the columns.
        headers: the column that makes the record's headers. It isn't in the value.
        topic_column: the column that names the topic, instead of `topic`, which is "". It isn't in the value.
        event_time: the column that has the event time, where it isn't called as in the input any more.
        on_error: what becomes of rows to a topic that isn't there; None: with `topic`, which is there.
        tombstone: a condition under which there is no value, as text or Column.
        plain_decimals: of an aggregate's key: see `kohort.spark.jobs.arrow_key_encoding.key_texts`.
        registry: the registered schema of the value; None for values without an id.
        delimiter: between the fields of CSV.
        key_written: the format of the key, if it isn't `Route.TEXT`.
    """

    topic: str
    key: tuple[str, ...] | None
    format: str
    columns: tuple[str, ...] = ()
    avro_schema: str | None = None
    plain_decimals: bool = True
    headers: str | None = None
    topic_column: str | None = None
    event_time: str | None = None
    on_error: ErrorPolicy | None = None
    tombstone: str | Column | None = None
    registry: RegistryWriting | None = None
    delimiter: str = ","
    key_written: KeyWriting | None = None


@dataclass(frozen=True)
class ToFunction:
    """Rows go to a function of the user's, in the driver, with the id of their batch.

    Attributes:
        function: takes a DataFrame and the id.
        schema: of the rows.
    """

    function: Callable[[Any, str], object]
    schema: StructType


@dataclass(frozen=True)
class ToRows:
    """Rows go to a repartition topic, by `key` (`Route.TEXT`), so that they lie where a table's keys do.

    Attributes:
        event_time: the column of the rows that becomes the record's timestamp; None: they keep that of their record.
        by_stream_time: whether they are read for windows with a grace, so that their order says which are late.
        since: the BIGINT column that gets the rows' times (ms) instead: the records' are 1970, which is never new.
    """

    topic: str
    key: tuple[str, ...]
    schema: StructType
    event_time: str | None = None
    by_stream_time: bool = False
    since: str | None = None


@dataclass(frozen=True)
class ToPartials:
    """Rows are aggregated as far as they go, and the partials go to a repartition topic, by group (`Route.JSON`)."""

    topic: str
    aggregate: AggregateSpec


@dataclass(frozen=True)
class Aggregate:
    """Rows, or partials, are merged with what is in the aggregate's store.

    Attributes:
        stream: the repartition topic that gets the groups, too, where the program goes on with them.
        deletes: whether that is told of groups that go, too, since they go on as a table.
        waiting: the store of groups that have changed and are written later, where each is only once in a time.
    """

    spec: AggregateSpec
    outputs: tuple[ToTopic, ...]
    stream: str | None = None
    waiting: Store | None = None
    deletes: bool = False

    @property
    def stores(self) -> tuple[Store, ...]:
        """The groups', and that of those that wait."""
        return Store(self.spec.name, self.spec.changelog), *([] if self.waiting is None else [self.waiting])


@dataclass(frozen=True)
class Discard:
    """Nothing becomes of the rows: a processor that only keeps state has made them."""


Terminal = ToTopic | ToFunction | ToRows | ToPartials | Aggregate | Discard


@dataclass(frozen=True)
class Branch:
    """A way from a subtopology's input to an end."""

    steps: tuple[Step, ...]
    terminal: Terminal

    @property
    def by_task(self) -> bool:
        """Whether it matters which task a row belongs to: an aggregate's groups are there, and a table's rows."""
        joined = any(isinstance(step, Join) and not step.is_global for step in self.steps)
        return joined or bool(self.processors) or isinstance(self.terminal, Aggregate)

    @property
    def processors(self) -> tuple[Process, ...]:
        """Its processors, in the order in which rows go through them."""
        return tuple(step for step in self.steps if isinstance(step, Process))

    @property
    def by_stream_time(self) -> bool:
        """Whether it matters at which stream time a row was read."""
        if self.processors:
            return True
        match self.terminal:
            case ToRows(by_stream_time=by_stream_time):
                return by_stream_time
            case ToPartials(_, spec) | Aggregate(spec, _):
                return spec.window is not None and spec.window.grace_ms is not None
            case _:
                return False

    def internal_columns(self, event_time: str | None) -> tuple[str, ...]:
        """The columns of Kohort's own that its rows need, where `event_time` is the input's."""
        match self.terminal:
            case ToPartials(_, spec) | Aggregate(spec, _):
                by_offset = spec.by_offset
            case _:
                by_offset = False
        wanted = {
            PARTITION: True,
            TIMESTAMP: event_time is None or bool(self.processors),
            STREAM_TIME: self.by_stream_time,
            OFFSET: by_offset or bool(self.processors),
        }
        return tuple(name for name, is_wanted in wanted.items() if is_wanted)


# Subtopologies and programs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CompiledSubtopology:
    """A subtopology: what one kind of task does.

    Attributes:
        id: the subtopology's id: "0", "1", ….
        input: what its branches read; None if it only keeps tables, for queries.
        tables: tables of its tasks; global ones aren't among them.
    """

    id: str
    input: Input | None
    tables: tuple[TableStore, ...]
    branches: tuple[Branch, ...]

    @property
    def aggregates(self) -> tuple[AggregateSpec, ...]:
        """The aggregates that are kept in its tasks' stores."""
        ends = (branch.terminal for branch in self.branches)
        return tuple(end.spec for end in ends if isinstance(end, Aggregate))

    @property
    def processors(self) -> tuple[Process, ...]:
        """The processors whose state is in its tasks' stores; each once, though branches have it in common."""
        return tuple({step.name: step for branch in self.branches for step in branch.processors}.values())

    @property
    def stores(self) -> tuple[Store, ...]:
        """Its tasks' stores: the tables', then the aggregates', then the processors'."""
        tables = (Store(table.name, table.changelog) for table in self.tables if table.changelog is not None)
        states = (Store(state.store, state.changelog) for step in self.processors for state in step.states)
        ends = (branch.terminal for branch in self.branches)
        aggregates = (store for end in ends if isinstance(end, Aggregate) for store in end.stores)
        return (*tables, *aggregates, *states)

    @property
    def partition_checked(self) -> tuple[SourceSpec, ...]:
        """The topics whose records have to lie where their keys belong: state is by partition, and so are joins."""
        if self.input is None:
            return ()
        by_task = any(branch.by_task for branch in self.branches)
        return (*(self.read if by_task else ()), *(table.source for table in self.tables))

    @property
    def read(self) -> tuple[SourceSpec, ...]:
        """What its branches read that somebody else writes: a stream may be several topics."""
        match self.input:
            case TopicInput(source):
                return (source,)
            case SidesInput():
                return self.input.sources
        return ()

    @property
    def input_topics(self) -> tuple[str, ...]:
        """All topics that it reads: the input's, then the tables'."""
        own = () if self.input is None else self.input.topics
        return (*own, *(table.source.topic for table in self.tables))

    @property
    def copartitioned(self) -> tuple[str, ...]:
        """The topics that need equally many partitions: what belongs together has to be one task's."""
        return self.input_topics if self.by_task and len(self.input_topics) > 1 else ()

    @property
    def by_task(self) -> bool:
        """Whether it matters which task a record belongs to."""
        return bool(self.tables) or any(branch.by_task for branch in self.branches)

    @property
    def pattern(self) -> str | None:
        """The pattern of the topics that it reads, if it reads by one."""
        source = self.input.source if isinstance(self.input, TopicInput) else None
        return source.topic if source is not None and source.pattern else None


@dataclass(frozen=True)
class Program:
    """All of an application.

    Attributes:
        application_id: the group's id, and the beginning of all its topics' names.
        subtopologies: by id, in order.
        globals: tables that every instance has all of.
        topology: what a member sends to the group.
        fingerprint: changes with whatever makes stores and repartition topics unreadable for another program. It is
            committed with each offset.
        notes: what its author may not expect.
    """

    application_id: str
    subtopologies: tuple[CompiledSubtopology, ...]
    globals: tuple[TableStore, ...]
    topology: Topology
    fingerprint: Fingerprint
    notes: tuple[Note, ...] = ()

    def subtopology(self, subtopology_id: str) -> CompiledSubtopology:
        """The subtopology with this id. Raises KeyError."""
        for subtopology in self.subtopologies:
            if subtopology.id == subtopology_id:
                return subtopology
        raise KeyError(subtopology_id)

    @property
    def sources(self) -> tuple[SourceSpec, ...]:
        """All topics that somebody else writes: of streams, tables and global tables."""
        return tuple(self._sources())

    @property
    def outputs(self) -> tuple[ToTopic, ...]:
        """All that it writes to topics of the user's: rows, and groups of aggregates."""
        found: list[ToTopic] = []
        for end in (branch.terminal for each in self.subtopologies for branch in each.branches):
            found += (end,) if isinstance(end, ToTopic) else end.outputs if isinstance(end, Aggregate) else ()
        return tuple(found)

    @property
    def sinks(self) -> tuple[str, ...]:
        """All topics of the user's that it writes, dead letters' too."""
        found = dict.fromkeys(output.topic for output in self.outputs if output.topic_column is None)
        policies = (source.on_error for source in self._sources())
        found.update(dict.fromkeys(policy.topic for policy in policies if isinstance(policy, DeadLetter)))
        return tuple(found)

    @property
    def internal_topics(self) -> tuple[str, ...]:
        """Repartition topics and changelogs."""
        subtopologies = self.topology.subtopologies.values()
        repartition = [topic.name for each in subtopologies for topic in each.repartition_sources]
        return (*repartition, *(topic.name for each in subtopologies for topic in each.changelogs))

    def _sources(self) -> Iterator[SourceSpec]:
        for subtopology in self.subtopologies:
            for source in subtopology.read:
                yield from source.each()
            yield from (table.source for table in subtopology.tables)
        yield from (table.source for table in self.globals)
