"""From a branch to a DataFrame: source, steps, end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.client.config import ClientConfig
from kohort.spark.internals import arrow_schema, empty_frame
from kohort.spark.jobs.column_encoding import column, from_wire, wire_schema
from kohort.spark.jobs.column_pruning import used_columns
from kohort.spark.jobs.key_encoding import key_text
from kohort.spark.jobs.stages.common import KEY, OFFSET, PARTITION, STREAM_TIME, TIMESTAMP, Place, numbered
from kohort.spark.jobs.stages.join import Joining, join_stage
from kohort.spark.jobs.stages.partition_check import Placing
from kohort.spark.jobs.stages.read_rows import TOMBSTONE, RowsReading, rows_stage
from kohort.spark.jobs.stages.state_lookup import partials_stage
from kohort.spark.jobs.terminals import (
    aggregated_rows,
    arrow_aggregated,
    merged,
    partials,
    priors_of,
    priors_schema,
    row_time,
    table_records,
    to_partials,
    to_rows,
    to_topic,
)
from kohort.spark.program.column_propagation import transformed
from kohort.spark.program.compiled import (
    Aggregate,
    Branch,
    CompiledSubtopology,
    Join,
    PartialsInput,
    Route,
    RowsInput,
    SourceSpec,
    Step,
    TableStore,
    ToPartials,
    TopicInput,
    ToRows,
    ToTopic,
    Transform,
)
from kohort.spark.program.error_policies import DeadLetter, Drop, ErrorPolicy
from kohort.spark.program.errors import ProgramError

_JOINED = "_joined_"
_OWN: Final = {PARTITION: T.IntegerType(), TIMESTAMP: T.LongType(), STREAM_TIME: T.LongType(), OFFSET: T.LongType()}
"""Columns that rows have beside the user's: `_partition`, and those of the others that are wanted, in this order."""
HIDDEN: Final = frozenset(_OWN) - {PARTITION}
"""Columns that go with rows without the user's functions seeing them."""


class Plans:
    """Builds the plans of a part.

    Args:
        spark: the session.
        part: what they are of.
        servers: where executors read.
    """

    def __init__(self, spark: SparkSession, part: CompiledSubtopology, servers: ClientConfig) -> None:
        self._spark = spark
        self._part = part
        self._servers = servers
        self._needed: frozenset[str] | None = None
        self._flows: dict[int, _Flow] = {}

    def branch(self, number: int, place: Place) -> DataFrame:
        """The plan of a branch, whose rows have `ROWS_SCHEMA`."""
        branch = self._part.branches[number]
        read = self._part.input
        if isinstance(read, PartialsInput):
            spec = read.aggregate
            stage = partials_stage(place, self._servers, priors_of(spec))
            return merged(self._source(place).mapInArrow(stage, priors_schema(spec)), spec)
        flow = self._flow(number)
        # No partition is divided where its rows have to be in order, or its stream time goes from record to record.
        whole = branch.timed or (isinstance(branch.terminal, Aggregate) and branch.terminal.spec.arrow is not None)
        rows = flow.rows(self._rows(place, flow.own, branch, whole=whole), place)
        event_time = read.source.event_time if isinstance(read, TopicInput) else read.event_time if read else None
        match branch.terminal:
            case ToTopic():
                return to_topic(rows, branch.terminal, event_time)
            case ToRows():
                return to_rows(rows, branch.terminal)
            case ToPartials():
                return to_partials(rows, branch.terminal)
            case Aggregate(spec):
                _demand_partition(rows, f"aggregate {spec.name!r}")
                return (aggregated_rows if spec.arrow is None else arrow_aggregated)(rows, spec, place)

    def table(self, table: TableStore, place: Place) -> DataFrame:
        """The plan of a table's records."""
        source = table.source
        own = (PARTITION, TIMESTAMP)
        reading = self._reading(source, source.schema, own, table=True, keyless=table.is_global)
        schema = _with(source.schema, own).add(TOMBSTONE, T.StringType())
        rows = self._source(place).mapInArrow(rows_stage(place, reading), schema)
        return table_records(rows, source.schema, source.key, TOMBSTONE)

    def _source(self, place: Place) -> DataFrame:
        return self._spark.range(0, place.splits, 1, place.splits)

    def _rows(self, place: Place, own: tuple[str, ...], branch: Branch, *, whole: bool) -> DataFrame:
        """The input's rows: the columns that any branch uses, and some of Kohort's own."""
        read = self._part.input
        if isinstance(read, TopicInput):
            needed = self._used()
            schema = T.StructType([field for field in read.source.schema.fields if field.name in needed])
            reading = self._reading(read.source, schema, own, table=False)
            reading = replace(reading, whole=whole, placeless=branch.by_task)
            return self._source(place).mapInArrow(rows_stage(place, reading), _with(schema, own))
        assert isinstance(read, RowsInput)
        columns = tuple((field.name, field.dataType) for field in read.schema.fields)
        wired = wire_schema(columns)
        reading = RowsReading(
            self._servers, wired.json(), "wire", None, read.event_time, "fail", own, table=False, whole=whole
        )
        rows = self._source(place).mapInArrow(rows_stage(place, reading), _with(wired, own))
        plain = [from_wire(column(name), kind).alias(name) for name, kind in columns]
        return rows.select(*plain, *own)

    def _reading(
        self,
        source: SourceSpec,
        schema: T.StructType,
        own: tuple[str, ...],
        *,
        table: bool,
        keyless: bool = True,
    ) -> RowsReading:
        placing = None
        if source in self._part.placed:
            plain = self._spark.conf.get("spark.sql.ansi.enabled") == "true"
            placing = Placing(source.key, source.partitioner, table, plain)
        return RowsReading(
            self._servers, schema.json(), source.format, source.avro_schema, source.event_time,
            _policy(source.on_error), own, table, key=source.key if table and len(source.key) > 1 else (),
            times=source.times, derived=tuple(each for each in source.derived if each.name in schema.names),
            placing=placing, tombstones=source.tombstones, keyless=keyless,
        )  # fmt: skip

    def _flow(self, number: int) -> _Flow:
        if number not in self._flows:
            read = self._part.input
            assert isinstance(read, (TopicInput, RowsInput))
            schema = read.source.schema if isinstance(read, TopicInput) else read.schema
            event_time = read.source.event_time if isinstance(read, TopicInput) else read.event_time
            branch = self._part.branches[number]
            end = branch.terminal
            spec = end.aggregate if isinstance(end, ToPartials) else end.spec if isinstance(end, Aggregate) else None
            wanted = {
                PARTITION: True,
                TIMESTAMP: event_time is None,
                STREAM_TIME: branch.timed,
                OFFSET: spec is not None and spec.by_arrival,
            }
            own = tuple(name for name in _OWN if wanted[name])
            self._flows[number] = _Flow(self._spark, schema, branch, own)
        return self._flows[number]

    def _used(self) -> frozenset[str]:
        """The columns that all branches read: all the same, so that a record is bad for all of them or for none."""
        if self._needed is None:
            read = self._part.input
            assert isinstance(read, TopicInput)
            needed = frozenset([] if read.source.event_time is None else [read.source.event_time])
            if read.source in self._part.placed:
                needed |= frozenset(read.source.key)
            for number in range(len(self._part.branches)):
                needed |= self._flow(number).needed
            derived = {each.name: each.column for each in read.source.derived}
            needed |= {column for name, column in derived.items() if name in needed}
            values = [name for name in read.source.schema.names if name not in derived]
            needed &= frozenset(read.source.schema.names)
            # A row needs a column of the value, even if it is but counted.
            self._needed = needed if needed & frozenset(values) else needed | {values[0]}
        return self._needed


class _Flow:
    """A branch's steps, cut at its joins, and the columns that each piece uses."""

    def __init__(self, spark: SparkSession, schema: T.StructType, branch: Branch, own: tuple[str, ...]) -> None:
        self.own = own
        self._pieces: list[list[Transform]] = [[]]
        self._joins: list[Join] = []
        for step in branch.steps:
            self._add(step)
        self._inputs = inputs = [_with(schema, own)]
        for piece, join in zip(self._pieces, self._joins, strict=False):
            before = _transformed(empty_frame(spark, inputs[-1]), piece)
            inputs.append(_joined_schema(before.schema, join))
        after: list[str] | None = None
        self._used: list[frozenset[str]] = []
        for number in range(len(self._pieces) - 1, -1, -1):
            used = used_columns(spark, inputs[number], partial(self._end, number, after, branch))
            used |= _OWN.keys() & set(inputs[number].names)
            self._used.insert(0, used)
            after = [name for name in inputs[number].names if name in used]
        self.needed = self._used[0]

    def rows(self, rows: DataFrame, place: Place) -> DataFrame:
        """What the steps make of the input's rows."""
        for number, piece in enumerate(self._pieces):
            rows = _transformed(_completed(rows, self._inputs[number]), piece)
            if number < len(self._joins):
                rows = self._joined(rows, number, self._used[number + 1], place)
        return rows

    def _add(self, step: Step) -> None:
        if isinstance(step, Transform):
            self._pieces[-1].append(step)
        else:
            self._joins.append(step)
            self._pieces.append([])

    def _end(self, number: int, after: Sequence[str] | None, branch: Branch, rows: DataFrame) -> DataFrame:
        """The columns of a piece's result that what comes after it uses."""
        rows = _transformed(rows, self._pieces[number])
        if after is None:
            return _used_by_end(rows, branch)
        join = self._joins[number]
        wanted = set(after) | set(join.on) | _OWN.keys()
        return rows.select(*[column(name) for name in rows.columns if name in wanted])

    def _joined(self, rows: DataFrame, number: int, used: frozenset[str], place: Place) -> DataFrame:
        join = self._joins[number]
        if not join.is_global:
            _demand_partition(rows, f"the join with table {join.table.name!r}")
        own = [field for field in rows.schema.fields if field.name == PARTITION]
        others = [field for field in rows.schema.fields if field.name != PARTITION]
        # Batches without any column have no rows.
        kept = [field for field in others if field.name in used] or others[:1]
        added = [(field.name, field.dataType) for field in _added(join) if field.name in used]
        # A join that only filters still has to look up.
        wired = wire_schema(tuple(added))
        passed = [column(field.name).alias(numbered(at)) for at, field in enumerate(kept)]
        keyed = rows.select(*passed, *[field.name for field in own], key_text(join.on, Route.TEXT).alias(KEY))
        joining = Joining(
            join.table.name,
            arrow_schema(wired),
            _JOINED,
            join.how == "inner",
            join.is_global,
            number,
        )
        given = [T.StructField(numbered(at), field.dataType) for at, field in enumerate(kept)]
        looked_up = [T.StructField(_JOINED + field.name, field.dataType) for field in wired.fields]
        done = keyed.mapInArrow(join_stage(place, joining), T.StructType([*given, *own, *looked_up]))
        plain = [from_wire(column(_JOINED + name), kind).alias(name) for name, kind in added]
        back = [column(numbered(at)).alias(field.name) for at, field in enumerate(kept)]
        return done.select(*back, *[field.name for field in own], *plain)


def _used_by_end(rows: DataFrame, branch: Branch) -> DataFrame:
    end = branch.terminal
    match end:
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


def _transformed(rows: DataFrame, piece: Sequence[Transform]) -> DataFrame:
    """Rows after the user's functions, which don't see `HIDDEN`."""
    for step in piece:
        rows = transformed(rows, step.function, HIDDEN)
    return rows


def _completed(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """All columns in the places that a transform may go by, as when the program was compiled. Unused ones are null."""
    there = set(rows.columns)
    unused = {each.name: F.lit(None).cast(each.dataType).alias(each.name) for each in schema if each.name not in there}
    return rows.select(*[unused.get(name, column(name)) for name in schema.names])


def _joined_schema(schema: T.StructType, join: Join) -> T.StructType:
    """The columns after a join, in the order of `kohort.spark.program.join_checks.joined`."""
    own = [field for field in schema.fields if field.name in _OWN]
    return T.StructType([*(field for field in schema.fields if field not in own), *_added(join), *own])


def _added(join: Join) -> list[T.StructField]:
    fields = join.table.source.schema.fields
    return [T.StructField(field.name, field.dataType) for field in fields if field.name not in join.on]


def _with(schema: T.StructType, own: Sequence[str]) -> T.StructType:
    return T.StructType([*schema.fields, *(T.StructField(name, _OWN[name]) for name in own)])


def _demand_partition(rows: DataFrame, what: str) -> None:
    if PARTITION not in rows.columns:
        raise ProgramError(
            f"a transform before {what} loses the column {PARTITION}, which says where a row belongs: it goes with "
            f"rows through select, where, explode, joins and UDFs, but not through mapInPandas, mapInArrow or a union "
            f"with other rows. Keep it there, or say .repartition(…) after the transform"
        )


def _policy(policy: ErrorPolicy) -> Literal["fail", "drop", "dead"]:
    return "dead" if isinstance(policy, DeadLetter) else "drop" if isinstance(policy, Drop) else "fail"
