"""Makes DataFrames of branches: source, steps, terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.client.config import ClientConfig
from kohort.spark.errors import ProgramError
from kohort.spark.internals import arrow_schema, empty_frame
from kohort.spark.jobs.column_encoding import column, decoded_column, encoded_schema
from kohort.spark.jobs.column_pruning import used_columns
from kohort.spark.jobs.key_encoding import key_text
from kohort.spark.jobs.process_stages import process_stage_of
from kohort.spark.jobs.session_aggregates import session_aggregated, session_partials
from kohort.spark.jobs.stages.context import StageContext, numbered
from kohort.spark.jobs.stages.join import TableJoin, join_stage
from kohort.spark.jobs.stages.partition_check import PartitionCheck
from kohort.spark.jobs.stages.peek import peek_stage
from kohort.spark.jobs.stages.process import GIVEN, process_stage
from kohort.spark.jobs.stages.read_rows import TOMBSTONE, RowsReading, read_rows_stage
from kohort.spark.jobs.stages.state_lookup import read_partials_stage
from kohort.spark.jobs.stages.task_rows import OF_THE_TASK, task_rows_stage
from kohort.spark.jobs.terminals import (
    aggregated_rows,
    arrow_aggregated,
    discarded,
    in_whole_tasks,
    merged,
    merged_at_once,
    partials,
    row_time,
    state_lookup_of,
    state_lookup_schema,
    table_records,
    to_function,
    to_partials,
    to_rows,
    to_topic,
    upserts,
    whole_tasks,
)
from kohort.spark.program.column_propagation import transformed
from kohort.spark.program.compiled import (
    Aggregate,
    Branch,
    CompiledSubtopology,
    Discard,
    Join,
    PartialsInput,
    Peek,
    Route,
    RowsInput,
    SidesInput,
    SourceSpec,
    Step,
    TableStore,
    ToFunction,
    ToPartials,
    TopicInput,
    ToRows,
    ToTopic,
    Transform,
)
from kohort.spark.program.error_policies import DeadLetter, Drop, ErrorPolicy
from kohort.spark.program.internal_columns import (
    DELETED,
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    STREAM_TIME,
    TIMESTAMP,
    TOPIC,
    VALUELESS,
)
from kohort.spark.program.processor_specs import Process
from kohort.spark.program.record_keys import KeyReading
from kohort.spark.program.windows import SessionSpec

_JOINED = "_joined_"
_ORDER_LOST: Final = (
    "it goes with rows through select, where, explode, joins and UDFs, but not through mapInPandas, mapInArrow, "
    "unpivot or a union. Say .repartition(…) after it"
)
_INTERNAL: Final = {
    PARTITION: T.IntegerType(),
    TIMESTAMP: T.LongType(),
    STREAM_TIME: T.LongType(),
    OFFSET: T.LongType(),
}
"""Columns of Kohort's own that rows have beside the user's: those of them that are wanted, in this order."""
HIDDEN: Final = frozenset(_INTERNAL) - {PARTITION}
"""Columns that go with rows without the user's functions seeing them."""


class Plans:
    """Builds the plans of a subtopology.

    Args:
        servers: where executors read.
    """

    def __init__(self, spark: SparkSession, subtopology: CompiledSubtopology, servers: ClientConfig) -> None:
        self._spark = spark
        self._subtopology = subtopology
        self._servers = servers

    def branch(self, number: int, context: StageContext, *, merging: bool = False) -> DataFrame:
        """The plan of a branch, whose rows have `ROWS_SCHEMA`. `merging`: it has mergers in this epoch."""
        branch = self._subtopology.branches[number]
        source = self._subtopology.input
        if isinstance(source, PartialsInput):
            spec = source.aggregate
            stage = read_partials_stage(context, self._servers, state_lookup_of(spec))
            return merged(self._splits(context).mapInArrow(stage, state_lookup_schema(spec)), spec)
        assert source is not None
        flow = self._flows[number]
        rows = flow.rows(self._rows(context, source, flow.internal_columns, branch), context)
        match branch.terminal:
            case ToTopic():
                return to_topic(rows, branch.terminal, branch.terminal.event_time or source.event_time)
            case ToFunction():
                return to_function(rows, branch.terminal)
            case ToRows():
                return to_rows(rows, branch.terminal)
            case ToPartials(aggregate=spec):
                return merged_at_once(rows, spec, context) if merging else to_partials(rows, branch.terminal)
            case Discard():
                return discarded(rows)
            case Aggregate(spec) if isinstance(spec.window, SessionSpec):
                return session_aggregated(rows, spec, context)
            case Aggregate(spec):
                _demand_partition(rows, f"aggregate {spec.name!r}")
                return (aggregated_rows if spec.arrow is None else arrow_aggregated)(rows, spec, context)

    def table(self, table: TableStore, context: StageContext) -> DataFrame:
        """The plan of a table's records."""
        source = table.source
        internal = (PARTITION, TIMESTAMP)
        reading = self._reading(source, source.schema, internal, table=True, keyless=table.is_global)
        return table_records(self._read(context, reading, source.schema), source.schema, source.key, TOMBSTONE)

    def _splits(self, context: StageContext) -> DataFrame:
        """A row for each split, with its number."""
        return self._spark.range(0, context.splits, 1, context.splits)

    def _rows(
        self,
        context: StageContext,
        source: TopicInput | RowsInput | SidesInput,
        internal: tuple[str, ...],
        branch: Branch,
    ) -> DataFrame:
        """The input's rows: the columns that any branch uses, and the internal ones."""
        if isinstance(source, SidesInput):
            return self._sides(context, source, internal)
        # No partition is divided where its rows have to be in order, or its stream time goes from record to record.
        terminal = branch.terminal
        whole = branch.by_stream_time or (isinstance(terminal, Aggregate) and terminal.spec.arrow is not None)
        if isinstance(source, TopicInput):
            used = self._used
            schema = T.StructType([field for field in source.source.schema.fields if field.name in used])
            reading = self._reading(source.source, schema, internal, table=source.upserts, keyless=not source.upserts)
            reading = replace(reading, whole_partitions=whole, null_partitions=branch.by_task)
            rows = self._read(context, reading, schema)
            return upserts(rows, source.source.key) if source.upserts else rows
        if not source.encoded:
            schema = T.StructType([field for field in source.schema.fields if field.name != DELETED])
            reading = RowsReading(
                self._servers, schema.json(), "json", None, source.event_time, "fail", internal,
                table=bool(source.upserts), whole_partitions=whole, key=source.upserts, keyless=not source.upserts,
            )  # fmt: skip
            rows = self._read(context, reading, schema)
            return upserts(rows, source.upserts) if source.upserts else rows
        columns = tuple((field.name, field.dataType) for field in source.schema.fields)
        schema = encoded_schema(columns)
        reading = RowsReading(
            self._servers, schema.json(), "encoded", None, source.event_time, "fail", internal,
            table=False, whole_partitions=whole,
        )  # fmt: skip
        rows = self._read(context, reading, schema)
        decoded = [decoded_column(column(name), kind).alias(name) for name, kind in columns]
        return rows.select(*decoded, *internal)

    def _sides(self, context: StageContext, read: SidesInput, internal: tuple[str, ...]) -> DataFrame:
        """Both sides of a join, each as its steps make it of its topic, with all of a partition in one task."""
        sides = []
        for number, (side, flow) in enumerate(zip(read.sides, self._side_flows, strict=True)):
            source = side.source
            used = self._read_columns(source, flow.used)
            schema = T.StructType([field for field in source.schema.fields if field.name in used])
            reading = self._reading(source, schema, tuple(_INTERNAL), table=False)
            reading = replace(
                reading, whole_partitions=True, null_partitions=True, null_keys=read.null_keys, topic=source.topic,
                number=number,
            )  # fmt: skip
            rows = flow.rows(self._read(context, reading, schema), context)
            _demand_partition(rows, f"side {number + 1} of the join")
            time = row_time(rows, side.event_time).alias(TIMESTAMP)
            own = {TIMESTAMP: time} | {name: column(name) for name in internal if name != TIMESTAMP}
            sides.append(rows.select(*[column(name) for name in read.schema.names], *[own[name] for name in internal]))
        return in_whole_tasks(sides[0].union(sides[1]), context)

    def _read(self, context: StageContext, reading: RowsReading, schema: T.StructType) -> DataFrame:
        """What is read: these columns, the internal ones, and of a table `TOMBSTONE`."""
        read = _with(schema, reading.internal_columns)
        if reading.table:
            read = read.add(TOMBSTONE, T.StringType())
        return self._splits(context).mapInArrow(read_rows_stage(context, reading), read)

    def _reading(
        self,
        source: SourceSpec,
        schema: T.StructType,
        internal: tuple[str, ...],
        *,
        table: bool,
        keyless: bool = True,
    ) -> RowsReading:
        check = None
        if source in self._subtopology.partition_checked:
            plain_decimals = self._spark.conf.get("spark.sql.ansi.enabled") == "true"
            check = PartitionCheck(source.key, source.partitioner, table, plain_decimals)
        return RowsReading(
            self._servers, schema.json(), source.format, source.avro_schema, source.event_time,
            _policy(source.on_error), internal, table, key=source.key if table and len(source.key) > 1 else (),
            times=source.times, derived=tuple(each for each in source.derived if each.name in schema.names),
            partition_check=check, tombstones=source.tombstones, keyless=keyless and not source.valueless,
            headers=source.headers and HEADERS in schema.names, registry=source.registry, csv=source.csv,
            topics=source.topics_shown and TOPIC in schema.names, keys=_keys_read(source, schema.names),
            valueless=source.valueless and VALUELESS in schema.names,
        )  # fmt: skip

    @cached_property
    def _flows(self) -> tuple[_Flow, ...]:
        source = self._subtopology.input
        assert isinstance(source, (TopicInput, RowsInput, SidesInput))
        branches = Counter(step.name for branch in self._subtopology.branches for step in branch.processors)
        shared = frozenset(name for name, count in branches.items() if count > 1)
        return tuple(
            _Flow(self._spark, source.schema, branch, branch.internal_columns(source.event_time), shared)
            for branch in self._subtopology.branches
        )

    @cached_property
    def _side_flows(self) -> tuple[_Flow, ...]:
        read = self._subtopology.input
        assert isinstance(read, SidesInput)
        return tuple(
            _Flow(self._spark, side.source.schema, side.branch, tuple(_INTERNAL), frozenset()) for side in read.sides
        )

    @cached_property
    def _used(self) -> frozenset[str]:
        """The columns that all branches read: all the same, so that a record is bad for all of them or for none."""
        topic = self._subtopology.input
        assert isinstance(topic, TopicInput)
        own = frozenset(topic.source.key) if topic.upserts else frozenset[str]()
        return self._read_columns(topic.source, own.union(*(flow.used for flow in self._flows)))

    def _read_columns(self, source: SourceSpec, used: frozenset[str]) -> frozenset[str]:
        """What is read of a source where so much is used."""
        if source.event_time is not None:
            used |= {source.event_time}
        if source in self._subtopology.partition_checked:
            used |= frozenset(source.key)
        derived = {each.name: each.column for each in source.derived}
        used |= {column for name, column in derived.items() if name in used}
        values = [name for name in source.schema.names if name not in source.added]
        used &= frozenset(source.schema.names)
        # A row needs a column of the value, even if it is only counted.
        return used if used & frozenset(values) else used | {values[0]}


class _Flow:
    """A branch's steps, cut at its joins, and the columns that each piece uses.

    Args:
        shared: the processors that other branches have, too.
    """

    def __init__(
        self,
        spark: SparkSession,
        schema: T.StructType,
        branch: Branch,
        internal_columns: tuple[str, ...],
        shared: frozenset[str],
    ) -> None:
        self.internal_columns = internal_columns
        self._shared = shared
        self._pieces: list[list[Transform | Peek]] = [[]]
        self._cuts: list[Join | Process] = []
        for step in branch.steps:
            self._add(step)
        self._inputs = inputs = [_with(schema, internal_columns)]
        for piece, cut in zip(self._pieces, self._cuts, strict=False):
            before = _transformed(empty_frame(spark, inputs[-1]), piece)
            joined = _joined_schema if isinstance(cut, Join) else _processed_schema
            inputs.append(joined(before.schema, cut))  # type: ignore[arg-type]
        after: list[str] | None = None
        self._used_by_piece: list[frozenset[str]] = []
        for number in range(len(self._pieces) - 1, -1, -1):
            used = used_columns(spark, inputs[number], partial(self._end, number, after, branch))
            used |= _INTERNAL.keys() & set(inputs[number].names)
            self._used_by_piece.insert(0, used)
            after = [name for name in inputs[number].names if name in used]
        self.used = self._used_by_piece[0]

    def rows(self, rows: DataFrame, context: StageContext) -> DataFrame:
        """What the steps make of the input's rows."""
        for number, piece in enumerate(self._pieces):
            rows = _transformed(_completed(rows, self._inputs[number]), piece)
            if number < len(self._cuts):
                cut = self._cuts[number]
                if isinstance(cut, Join):
                    rows = self._joined(rows, cut, number, self._used_by_piece[number + 1], context)
                else:
                    rows = _processed(rows, cut, context, shared=cut.name in self._shared)
        return rows

    def _add(self, step: Step) -> None:
        if isinstance(step, (Join, Process)):
            self._cuts.append(step)
            self._pieces.append([])
        else:
            self._pieces[-1].append(step)

    def _end(self, number: int, after: Sequence[str] | None, branch: Branch, rows: DataFrame) -> DataFrame:
        """The columns of a piece's result that what comes after it uses."""
        rows = _transformed(rows, self._pieces[number])
        if after is None:
            return _used_by_end(rows, branch)
        cut = self._cuts[number]
        own = cut.rows.names if isinstance(cut, Process) else (*after, *cut.on)
        wanted = {*own, *_INTERNAL}
        return rows.select(*[column(name) for name in rows.columns if name in wanted])

    @staticmethod
    def _joined(rows: DataFrame, join: Join, number: int, used: frozenset[str], context: StageContext) -> DataFrame:
        if not join.is_global:
            _demand_partition(rows, f"the join with table {join.table.name!r}")
        partition = [field for field in rows.schema.fields if field.name == PARTITION]
        others = [field for field in rows.schema.fields if field.name != PARTITION]
        # Batches without any column have no rows.
        kept = [field for field in others if field.name in used] or others[:1]
        table = join.table.source.schema
        added = [(theirs, ours, table[theirs].dataType) for theirs, ours in join.added if ours in used]
        # A join that only filters still has to look up.
        encoded = encoded_schema(tuple((theirs, kind) for theirs, _, kind in added))
        passed = [column(field.name).alias(numbered(at)) for at, field in enumerate(kept)]
        key = key_text(join.on, Route.TEXT, join.table.source.key)
        keyed = rows.select(*passed, *[field.name for field in partition], key.alias(KEY))
        table_join = TableJoin(
            join.table.name,
            arrow_schema(encoded),
            _JOINED,
            join.how == "inner",
            join.is_global,
            number,
        )
        given = [T.StructField(numbered(at), field.dataType) for at, field in enumerate(kept)]
        looked_up = [T.StructField(_JOINED + field.name, field.dataType) for field in encoded.fields]
        done = keyed.mapInArrow(join_stage(context, table_join), T.StructType([*given, *partition, *looked_up]))
        decoded = [decoded_column(column(_JOINED + theirs), kind).alias(ours) for theirs, ours, kind in added]
        back = [column(numbered(at)).alias(field.name) for at, field in enumerate(kept)]
        return done.select(*back, *[field.name for field in partition], *decoded)


def _processed(rows: DataFrame, step: Process, context: StageContext, *, shared: bool) -> DataFrame:
    """What a processor makes of rows."""
    what = f"processor {step.name!r}"
    _demand_partition(rows, what)
    if missing := [name for name in (STREAM_TIME, OFFSET) if name not in rows.columns]:
        raise ProgramError(f"a transform before {what} loses the column {missing[0]}: {_ORDER_LOST}")
    internal = [
        column(PARTITION),
        row_time(rows, step.event_time).alias(TIMESTAMP),
        column(STREAM_TIME),
        column(OFFSET),
    ]
    given = rows.select(*internal, *[column(name).alias(numbered(at)) for at, name in enumerate(step.rows.names)])
    own = [T.StructField(name, _INTERNAL[name]) for name in GIVEN]
    output = [T.StructField(numbered(at), field.dataType) for at, field in enumerate(step.output.fields)]
    if step.by_clock:
        given = given.unionByName(_task_rows(given, context))
    stage = process_stage(context, process_stage_of(step, shared=shared))
    done = whole_tasks(given, context).mapInArrow(stage, T.StructType([*own, *output]))
    back = [column(numbered(at)).alias(name) for at, name in enumerate(step.output.names)]
    return done.select(*back, *_INTERNAL)


def _task_rows(given: DataFrame, context: StageContext) -> DataFrame:
    """A row for each task of the epoch, which has nothing but its partition and no record's offset."""
    session = given.sparkSession
    tasks = session.range(0, 1, 1, 1).mapInArrow(task_rows_stage(context), f"{PARTITION} int")
    others = [each for each in given.schema.fields if each.name != PARTITION]
    values = {each.name: F.lit(OF_THE_TASK if each.name == OFFSET else None) for each in others}
    return tasks.select(PARTITION, *[values[each.name].cast(each.dataType).alias(each.name) for each in others])


def _processed_schema(schema: T.StructType, step: Process) -> T.StructType:
    """The columns after a processor: all internal ones, whichever there were."""
    return _with(step.output, tuple(_INTERNAL))


def _used_by_end(rows: DataFrame, branch: Branch) -> DataFrame:
    end = branch.terminal
    match end:
        case Aggregate(spec, _) if isinstance(spec.window, SessionSpec):
            return session_partials(rows, spec)
        case ToPartials(_, spec) | Aggregate(spec, _) if spec.arrow is None:
            more = [PARTITION] if PARTITION in rows.columns else []
            return partials(rows, spec, *more)
        case Aggregate(spec, _):
            assert spec.arrow is not None
            names = {*spec.arrow.rows.names, *([spec.window.column] if spec.window else []), spec.event_time}
            return rows.select(*[column(name) for name in rows.columns if name in names])
        case ToRows():
            time = row_time(rows, end.event_time).alias(TIMESTAMP)
            return rows.select(time, *[column(name) for name in end.schema.names])
        case _:
            return rows


def _transformed(rows: DataFrame, piece: Sequence[Transform | Peek]) -> DataFrame:
    """Rows after the user's functions, which don't see `HIDDEN`."""
    for step in piece:
        if isinstance(step, Peek):
            rows = rows.mapInArrow(peek_stage(step.function, frozenset(_INTERNAL)), rows.schema)
        else:
            rows = transformed(rows, step.function, HIDDEN)
    return rows


def _completed(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """All columns in the places that a transform may go by, as when the program was compiled. Unused ones are null."""
    there = set(rows.columns)
    unused = {each.name: F.lit(None).cast(each.dataType).alias(each.name) for each in schema if each.name not in there}
    return rows.select(*[unused.get(name, column(name)) for name in schema.names])


def _joined_schema(schema: T.StructType, join: Join) -> T.StructType:
    """The columns after a join, in the order of `kohort.spark.program.join_checks.joined`."""
    internal = [field for field in schema.fields if field.name in _INTERNAL]
    return T.StructType([*(field for field in schema.fields if field not in internal), *_added(join), *internal])


def _added(join: Join) -> list[T.StructField]:
    table = join.table.source.schema
    return [T.StructField(ours, table[theirs].dataType) for theirs, ours in join.added]


def _with(schema: T.StructType, internal: Sequence[str]) -> T.StructType:
    return T.StructType([*schema.fields, *(T.StructField(name, _INTERNAL[name]) for name in internal)])


def _demand_partition(rows: DataFrame, what: str) -> None:
    if PARTITION not in rows.columns:
        raise ProgramError(
            f"a transform before {what} loses the column {PARTITION}, which says where a row belongs: it goes with "
            f"rows through select, where, explode, joins and UDFs, but not through mapInPandas, mapInArrow or a union "
            f"with other rows. Keep it there, or say .repartition(…) after the transform"
        )


def _keys_read(source: SourceSpec, names: Sequence[str]) -> KeyReading | None:
    """How keys are read, if any of their columns is used."""
    keys = source.key_read
    return keys if keys is not None and not set(names).isdisjoint(keys.columns) else None


def _policy(policy: ErrorPolicy) -> Literal["fail", "drop", "dead"]:
    return "dead" if isinstance(policy, DeadLetter) else "drop" if isinstance(policy, Drop) else "fail"
