"""The terminals of branches: rows as DataFrames of `ROWS_SCHEMA`, some with columns more for their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.epoch import HEADERS_SENT, TOPIC_SENT
from kohort.spark.internals import arrow_schema
from kohort.spark.jobs import kll_sketches
from kohort.spark.jobs.column_encoding import (
    JSON_OPTIONS,
    column,
    decoded_column,
    encoded_column,
    encoded_schema,
    nullable,
    shown,
    shown_object,
)
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.key_encoding import key_text, store_key
from kohort.spark.jobs.late_rows import with_windows
from kohort.spark.jobs.plan_reuse import keeps_splits
from kohort.spark.jobs.stages.arrow_aggregate import WINDOW, ArrowAggregate, arrow_aggregate_stage
from kohort.spark.jobs.stages.context import StageContext, numbered
from kohort.spark.jobs.stages.encode_keys import encode_keys_stage
from kohort.spark.jobs.stages.encode_values import DELETES, ValueEncoding, encode_values_stage
from kohort.spark.jobs.stages.late_partials import LATE
from kohort.spark.jobs.stages.merge import ROUTE, merge_stage
from kohort.spark.jobs.stages.merge_in_arrow import PartialRoute, merge_in_arrow_stage
from kohort.spark.jobs.stages.pack_rows import pack_rows_stage
from kohort.spark.jobs.stages.read_rows import TOMBSTONE
from kohort.spark.jobs.stages.row_groups import RowGroups, StateColumn, group_rows_stage
from kohort.spark.jobs.stages.state_lookup import StateLookup, state_column, state_lookup_stage
from kohort.spark.jobs.stages.state_merge import Gather, Result, StateMerge, StoreKey, state_merge_stage
from kohort.spark.program.aggregate_specs import with_offset
from kohort.spark.program.aggregates.base import column as given_column
from kohort.spark.program.aggregates.base import type_of
from kohort.spark.program.aggregates.columnwise import Fold, Sketch
from kohort.spark.program.aggregates.signed import LIVE
from kohort.spark.program.compiled import AggregateSpec, Route, ToFunction, ToPartials, ToRows, ToTopic
from kohort.spark.program.internal_columns import (
    DELETED,
    KEY,
    PARTITION,
    RECORDS,
    SIGN,
    STREAM_TIME,
    TIMESTAMP,
    WINDOW_START,
)
from kohort.spark.program.record_keys import KeyWriting
from kohort.spark.program.windows import WindowSpec

_LONG = T.LongType()
_COLUMNWISE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DoubleType)
"""The state columns whose values Arrow adds and compares as Spark does, but for what `state_merge` makes up for."""
_MERGED = f"key binary, value binary, partition int, {TIMESTAMP} bigint"


def to_topic(rows: DataFrame, terminal: ToTopic, event_time: str | None) -> DataFrame:
    """Rows as records of a topic of the user's, or of several; with `HEADERS_SENT` and `TOPIC_SENT`, if it has any."""
    names = list(terminal.columns)
    key = F.lit(None).cast("string") if terminal.key is None else key_text(terminal.key, Route.TEXT)
    if terminal.key_written is not None:
        rows, key = _with_keys(rows, terminal.key or (), terminal.key_written), column(KEY)
    more = []
    if terminal.headers is not None:
        more.append(headers(column(terminal.headers), rows.schema[terminal.headers].dataType).alias(HEADERS_SENT))
    if terminal.topic_column is not None:
        more.append(column(terminal.topic_column).alias(TOPIC_SENT))
    deletes = None
    if terminal.tombstone is not None:
        condition = F.expr(terminal.tombstone) if isinstance(terminal.tombstone, str) else terminal.tombstone
        deletes = F.coalesce(condition, F.lit(False))
    if terminal.format == "json":
        value = shown_object(rows, names)
        value = value if deletes is None else F.when(~deletes, value)
        return records(rows, key, value, F.lit(None), F.lit(None), row_time(rows, event_time), *more)
    passed = [key.alias(KEY), row_time(rows, event_time).alias(TIMESTAMP), *more]
    passed += [] if deletes is None else [deletes.alias(DELETES)]
    wanted = rows.select(*passed, *[column(name).alias(numbered(number)) for number, name in enumerate(names)])
    schema = T.StructType([rows.schema[name] for name in names])
    encoding = ValueEncoding(
        terminal.format, schema.json(), terminal.avro_schema, deletes is not None, terminal.registry, terminal.delimiter
    )
    made = T.StructType([*wanted.schema.fields[: len(passed)], T.StructField("value", T.BinaryType())])
    values = wanted.mapInArrow(encode_values_stage(encoding), made)
    more = [column(name) for name in (HEADERS_SENT, TOPIC_SENT) if name in made.names]
    return records(values, column(KEY), column("value"), F.lit(None), F.lit(None), column(TIMESTAMP), *more)


def _with_keys(rows: DataFrame, names: Sequence[str], writing: KeyWriting) -> DataFrame:
    """Rows with `_key`, the bytes of their records' keys."""
    passed = [column(name).alias(numbered(number)) for number, name in enumerate(rows.columns)]
    of_key = [column(name).alias(numbered(len(passed) + number)) for number, name in enumerate(names)]
    fields = [T.StructField(numbered(number), each.dataType) for number, each in enumerate(rows.schema.fields)]
    schema = T.StructType([*fields, T.StructField(KEY, T.BinaryType())])
    made = rows.select(*passed, *of_key).mapInArrow(encode_keys_stage(writing), schema)
    back = [column(numbered(number)).alias(name) for number, name in enumerate(rows.columns)]
    return made.select(*back, KEY)


def headers(given: Column, kind: T.DataType) -> Column:
    """A column of headers, of either type that these may have, as ARRAY<STRUCT<key, value>>; those without a key go."""
    entries = F.map_entries(given) if isinstance(kind, T.MapType) else given
    named = F.filter(entries, lambda each: each["key"].isNotNull())
    made = F.transform(
        named, lambda each: F.struct(each["key"].alias("key"), each["value"].cast("binary").alias("value"))
    )
    return F.coalesce(made, F.array().cast("array<struct<key: string, value: binary>>"))


def to_function(rows: DataFrame, terminal: ToFunction) -> DataFrame:
    """Rows as Arrow in `value`, a record for some rows of a task: the driver gives them to a function as they were."""
    names = enumerate(terminal.schema.names)
    given = rows.select(PARTITION, *[column(name).alias(numbered(number)) for number, name in names])
    packed = given.mapInArrow(pack_rows_stage(), "value binary, partition int")
    none = F.lit(None)
    return records(packed, none, column("value"), column("partition"), none, none)


def to_rows(rows: DataFrame, terminal: ToRows) -> DataFrame:
    """Rows as records of a repartition topic, in encoded types."""
    # Rows without a key belong together as others do. Records without one would be spread over all partitions.
    key = F.coalesce(key_text(terminal.key, Route.TEXT), F.lit(""))
    time = row_time(rows, terminal.event_time)
    fields = [
        (time if field.name == terminal.since else encoded_column(column(field.name), field.dataType)).alias(field.name)
        for field in terminal.schema.fields
    ]
    value = F.to_json(F.struct(*fields), JSON_OPTIONS)
    if terminal.since is not None:
        time = F.lit(0)
    order = [column(name) for name in (STREAM_TIME, PARTITION) if terminal.by_stream_time and name in rows.columns][:1]
    return records(rows, key, value, F.lit(None), F.lit(None), time, *order)


def partials(rows: DataFrame, spec: AggregateSpec, *more: str, aggregated: Sequence[Column] = ()) -> DataFrame:
    """Rows combined by key: `more` columns, `_key`, `_time`, `_records`, the state columns in their own types, and what
    else is `aggregated`. Of sessions, rows have `_window`.
    """
    if spec.by_offset:
        rows = with_offset(rows)
    if isinstance(spec.window, WindowSpec):
        rows = with_windows(rows, spec.window)
    group = [*more, *([WINDOW_START] if spec.window is not None else []), *spec.group_names]
    counted = [F.count(F.lit(1)).alias(RECORDS), F.max(_partial_time(rows, spec)).alias(TIMESTAMP), *aggregated]
    signs = [SIGN] if spec.by_sign else []
    combined = rows.groupBy(*[column(name) for name in (*group, *signs)]).agg(*counted, *spec.partial_columns())
    if signs:  # each key has one partial
        internal = [F.sum(RECORDS).alias(RECORDS), F.max(TIMESTAMP).alias(TIMESTAMP)]
        combined = combined.groupBy(*[column(name) for name in group]).agg(*internal, *spec.merge_columns())
    if not group:
        combined = combined.where(column(RECORDS) > 0)  # without rows there would be one group all the same
    return combined.withColumn(KEY, store_key(spec))


def _partial_time(rows: DataFrame, spec: AggregateSpec) -> Column:
    time = row_time(rows, spec.event_time)
    if STREAM_TIME not in rows.columns:
        return time
    # A row that lies in its partition by chance may be ahead of it, and isn't to close windows further on, either.
    return F.least(time, F.coalesce(column(STREAM_TIME), F.lit(0)))


def to_partials(rows: DataFrame, terminal: ToPartials) -> DataFrame:
    """Rows as partials of a repartition topic; of those that no window takes the value is just their number."""
    spec = terminal.aggregate
    combined = partials(rows, spec)
    value = F.to_json(F.struct(column(RECORDS).alias("records"), _state(spec).alias("state")), JSON_OPTIONS)
    if spec.window is not None:
        value = F.when(column(KEY).isin(LATE, NO_WINDOW), column(RECORDS).cast("string")).otherwise(value)
    route = key_text(spec.routed_by, spec.route)
    return records(combined, column(KEY), value, F.lit(None), route, column(TIMESTAMP), *_order(spec))


def merged_at_once(rows: DataFrame, spec: AggregateSpec, context: StageContext) -> DataFrame:
    """Rows as partials, of which those for the epoch's mergers are merged with the store; see `ROWS_SCHEMA`."""
    if (merge := _state_merge(spec, rows)) is not None and merge.key is not None:
        given, gather = _to_merge(rows, spec, merge, context)
        places = tuple(spec.group_names.index(name) for name in spec.routed_by)
        routes = PartialRoute(places, spec.routed_by, spec.route is Route.TEXT, merge.checked)
        return _stored(given.mapInArrow(merge_in_arrow_stage(context, merge, routes, gather), _MERGED), *_order(spec))
    route = key_text(spec.routed_by, spec.route).alias(ROUTE)
    encoded = partials(rows, spec).select(route, KEY, TIMESTAMP, RECORDS, *encoded_state(spec))
    stage = merge_stage(context, state_lookup_of(spec))
    return merged(encoded.mapInArrow(stage, state_lookup_schema(spec)), spec, beside_partials=True)


def _order(spec: AggregateSpec) -> list[Column]:
    """By their times, so that none comes after one that closes its window: see `drop_late_partials`."""
    graced = spec.window is not None and spec.window.grace_ms is not None
    return [column(TIMESTAMP).alias(STREAM_TIME)] if graced else []


def state_lookup_of(spec: AggregateSpec) -> StateLookup:
    """What stages must know of an aggregate's store."""
    window = spec.window
    closed_after = None
    if isinstance(window, WindowSpec) and window.grace_ms is not None:
        closed_after = window.size_ms + window.grace_ms if spec.emit == "close" else window.retention_ms
    return StateLookup(spec.name, arrow_schema(encoded_schema(spec.state_columns)), closed_after)


def state_lookup_schema(spec: AggregateSpec) -> T.StructType:
    """`StateLookup.schema`, as Spark's."""
    internal = [(PARTITION, T.IntegerType()), (KEY, T.StringType()), (TIMESTAMP, _LONG), (RECORDS, _LONG)]
    encoded = encoded_schema(spec.state_columns)
    state = [(state_column(number), field.dataType) for number, field in enumerate(encoded.fields)]
    return T.StructType([T.StructField(name, kind) for name, kind in (*internal, *state)])


def aggregated_rows(rows: DataFrame, spec: AggregateSpec, context: StageContext) -> DataFrame:
    """Rows of the aggregate's own tasks, merged with the store."""
    if (merge := _state_merge(spec, rows)) is not None:
        given, gather = _to_merge(rows, spec, merge, context, PARTITION)
        return _stored(given.mapInArrow(state_merge_stage(context, merge, gather), _MERGED))
    encoded = partials(rows, spec, PARTITION).select(PARTITION, KEY, TIMESTAMP, RECORDS, *encoded_state(spec))
    return merged(
        encoded.mapInArrow(state_lookup_stage(context, state_lookup_of(spec)), state_lookup_schema(spec)), spec
    )


def _state_merge(spec: AggregateSpec, rows: DataFrame) -> StateMerge | None:
    """How the aggregate is merged without Spark; None where only Spark can."""
    if spec.signed:
        return None
    folds: list[Fold | Sketch] = []
    results = []
    for name, aggregation in spec.aggregations:
        columnwise = aggregation.columnwise
        if columnwise is None:
            return None
        first = len(folds)
        results.append(Result(name, first, first + 1 if columnwise.mean else None, columnwise.quantiles))
        folds += columnwise.folds
    kinds = zip(folds, spec.state_columns, strict=True)
    if not all(isinstance(fold, Sketch) or isinstance(kind, _COLUMNWISE) for fold, (_, kind) in kinds):
        return None
    states = T.StructType([T.StructField(name, kind) for name, kind in spec.state_columns])
    windowed = spec.window is not None
    return StateMerge(
        state_lookup_of(spec),
        StoreKey(spec.group_names, windowed) if spec.group or windowed else None,
        arrow_schema(states),
        tuple(folds),
        tuple(results),
        rows.sparkSession.conf.get("spark.sql.ansi.enabled") == "true",
    )


def _to_merge(
    rows: DataFrame, spec: AggregateSpec, merge: StateMerge, context: StageContext, *more: str
) -> tuple[DataFrame, Gather | None]:
    """What a stage that merges is given, as it wants it, or else what makes it of that.

    Spark's grouping makes partials of rows, but not of sketches, which it would write and read at each step.
    """
    sketched = any(isinstance(fold, Sketch) for fold in merge.folds)
    if merge.key is None or not sketched or not _grouped_by_bytes(spec):
        state = [column(name).alias(state_column(number)) for number, (name, _) in enumerate(spec.state_columns)]
        key = [column(KEY)] if merge.key is None else _grouped_by(spec)
        return partials(rows, spec, *more).select(*more, TIMESTAMP, RECORDS, *key, *state), None
    kll_sketches.load()  # once, before several workers at once compile the same
    if isinstance(spec.window, WindowSpec):
        rows = with_windows(rows, spec.window)
    of, places = _folded_values(rows, spec)
    given = rows.select(*more, *_grouped_by(spec), _partial_time(rows, spec).alias(TIMESTAMP), *of)
    keys = given.schema.fields[: len(given.columns) - 1 - len(of)]
    columns = zip(merge.folds, places, merge.kinds.types, strict=True)
    groups = RowGroups(spec.name, len(keys), tuple(StateColumn(*each) for each in columns), merge.checked)
    if context.splits == 1:
        # A transform may have made several partitions of it, as a union does: each would have partials of the same key.
        return given.coalesce(1), groups.of_rows
    states = [T.StructField(state_column(number), kind) for number, (_, kind) in enumerate(spec.state_columns)]
    internal = [T.StructField(TIMESTAMP, _LONG), T.StructField(RECORDS, _LONG)]
    made = given.mapInArrow(group_rows_stage(groups), T.StructType([*keys, *internal, *states]))
    return made.repartition(context.splits, *[each.name for each in keys]), groups.of_partials


def _grouped_by(spec: AggregateSpec) -> list[Column]:
    """What a group is of, as stages have it: the window's start, if there are windows, and the columns by numbers."""
    window = [column(WINDOW_START)] if spec.window is not None else []
    return [*window, *(column(name).alias(f"_group{number}") for number, name in enumerate(spec.group_names))]


def _grouped_by_bytes(spec: AggregateSpec) -> bool:
    """Whether texts that Spark takes for the same are those of the same bytes: not so by some collations."""
    return all(kind == T.StringType() for _, kind in spec.group if isinstance(kind, T.StringType))


def _folded_values(rows: DataFrame, spec: AggregateSpec) -> tuple[list[Column], list[int | None]]:
    """What of rows is folded, each once, and for each state column which of these."""
    values: list[str | Column] = []
    places: list[int | None] = []
    for _, aggregation in spec.aggregations:
        columnwise = aggregation.columnwise
        assert columnwise is not None
        place, of = None, columnwise.of
        if of is not None:
            place = next((at for at, known in enumerate(values) if _is_the_same(of, known)), len(values))
            if place == len(values):
                values.append(of)
        places += [place] * len(columnwise.folds)
    return [_number(rows, of).alias(f"_of{place}") for place, of in enumerate(values)], places


def _is_the_same(one: str | Column, other: str | Column) -> bool:
    """Whether both are the same column. Expressions that read alike may give other values."""
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)


def _number(rows: DataFrame, of: str | Column) -> Column:
    """The column as a number that Arrow casts as Spark does; of what is none, whether it is there, which is counted."""
    given, kind = given_column(of), type_of(rows, of)
    if isinstance(kind, (*_COLUMNWISE, T.FloatType)):
        return given
    return given.cast("double") if isinstance(kind, T.NumericType) else F.when(given.isNotNull(), F.lit(True))


def _stored(done: DataFrame, *order: Column) -> DataFrame:
    return records(done, column("key"), column("value"), column("partition"), F.lit(None), column(TIMESTAMP), *order)


def merged(encoded: DataFrame, spec: AggregateSpec, *, beside_partials: bool = False) -> DataFrame:
    """Partials and prior values in encoded types (`StateLookup.schema`) as records of the store.

    `beside_partials`: those whose partition is negative stay partials, as `to_partials` makes them.
    """
    spec = with_nulls(spec)
    plain = encoded.select(PARTITION, KEY, TIMESTAMP, RECORDS, *decoded_state(spec))
    internal = [F.max(TIMESTAMP).alias(TIMESTAMP), *([F.sum(RECORDS).alias(RECORDS)] if beside_partials else [])]
    by_key = plain.groupBy(PARTITION, KEY).agg(*internal, *spec.merge_columns())
    if settled := spec.settled_columns():
        here = column(PARTITION) >= 0
        by_key = by_key.withColumns(
            {name: F.when(here, each).otherwise(column(name)) for name, each in settled.items()}
        )
    value = group_value(spec)
    if spec.signed:
        value = F.when(column(LIVE) > 0, value)
    order: list[Column] = []
    if beside_partials:
        partial = F.to_json(F.struct(column(RECORDS).alias("records"), _state(spec).alias("state")), JSON_OPTIONS)
        value, order = F.when(column(PARTITION) >= 0, value).otherwise(partial), _order(spec)
    return records(by_key, column(KEY), value, column(PARTITION), F.lit(None), column(TIMESTAMP), *order)


def with_nulls(spec: AggregateSpec) -> AggregateSpec:
    """The same, whose columns may all be null.

    What was read can't be cast to types without nulls, which the state and results of plain rows may have.
    """
    return replace(spec, state_columns=_nullable(spec.state_columns), output_columns=_nullable(spec.output_columns))


def decoded_state(spec: AggregateSpec) -> list[Column]:
    """The state columns of what stages give, in their own types."""
    columns = enumerate(spec.state_columns)
    return [decoded_column(column(state_column(number)), kind).alias(name) for number, (name, kind) in columns]


def group_value(spec: AggregateSpec) -> Column:
    """The store's value, of merged state columns."""
    kinds = zip(spec.finish_columns(), spec.output_columns, strict=True)
    results = [shown(result, kind).alias(name) for result, (name, kind) in kinds]
    return F.to_json(F.struct(*results, _state(spec).alias("state")), JSON_OPTIONS)


def arrow_aggregated(rows: DataFrame, spec: AggregateSpec, context: StageContext) -> DataFrame:
    """Rows of the aggregate's own tasks, given to the user's function, as records of the store.

    No partition is divided among splits (`RowsReading.whole_partitions`), so the function sees its rows in order.
    """
    arrow = spec.arrow
    assert arrow is not None
    if spec.window is not None:
        assert isinstance(spec.window, WindowSpec)
        rows = with_windows(rows, spec.window)
        rows = rows.withColumn(WINDOW, F.timestamp_millis(WINDOW_START))
    internal = [column(PARTITION), store_key(spec).alias(KEY), row_time(rows, spec.event_time).alias(TIMESTAMP)]
    given = rows.select(*internal, *[column(name).alias(numbered(at)) for at, name in enumerate(arrow.rows.names)])
    given = whole_tasks(given, context)
    keys = (*([WINDOW] if spec.window is not None else []), *spec.group_names)
    arrow_aggregate = ArrowAggregate(
        spec.name,
        arrow.function,
        arrow_schema(arrow.rows),
        keys,
        arrow_schema(arrow.state),
        state_lookup_of(spec),
    )
    fields = [T.StructField(PARTITION, T.IntegerType()), T.StructField(TIMESTAMP, _LONG), T.StructField(RECORDS, _LONG)]
    fields += [arrow.rows[name] for name in keys] + list(arrow.state.fields)
    done = given.mapInArrow(arrow_aggregate_stage(context, arrow_aggregate), T.StructType(fields))
    if spec.window is not None:
        done = done.withColumn(WINDOW_START, F.unix_millis(column(WINDOW)))
    state = [shown(column(name), kind).alias(name) for name, kind in spec.state_columns]
    value = F.to_json(F.struct(*state, _state(spec).alias("state")), JSON_OPTIONS)
    return records(done, store_key(spec), value, column(PARTITION), F.lit(None), column(TIMESTAMP))


def whole_tasks(rows: DataFrame, context: StageContext) -> DataFrame:
    """Rows, with all of a partition in one task of Spark's. What reads a source gives whole partitions.

    A shuffle loses the order of rows, so there is one only if it must be.
    """
    return rows if keeps_splits(rows) else in_whole_tasks(rows, context)


def in_whole_tasks(rows: DataFrame, context: StageContext) -> DataFrame:
    """The same, shuffled, where there are several splits."""
    if context.splits == 1:
        return rows.coalesce(1)
    # By number, not by hash, so that a few partitions are spread over all tasks of Spark's.
    task = F.coalesce(F.pmod(column(PARTITION), F.lit(context.splits)), F.lit(0))
    return rows.repartitionById(context.splits, task)


def discarded(rows: DataFrame) -> DataFrame:
    """No rows, once all have been made."""
    return rows.mapInArrow(_discard, "key binary, value binary, partition int, route binary, timestamp bigint")


def _discard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    return iter(())


def table_records(rows: DataFrame, schema: T.StructType, key: tuple[str, ...], tombstone: str) -> DataFrame:
    """A table's records for its store; those with a `tombstone` delete: it is their key, or has the key's columns."""
    fields = [encoded_column(column(field.name), field.dataType).alias(field.name) for field in schema.fields]
    deletes = column(tombstone).isNotNull()
    value = F.when(~deletes, F.to_json(F.struct(*fields), JSON_OPTIONS))
    text = key_text(key, Route.TEXT)
    if len(key) == 1:
        text = F.when(deletes, column(tombstone)).otherwise(text)
    return records(rows, text, value, column(PARTITION), F.lit(None), column(TIMESTAMP))


def upserts(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """A table's records as upserts: with `_deleted` for `TOMBSTONE`. Those whose key is null are left out."""
    if len(key) > 1:
        return rows.withColumn(DELETED, column(TOMBSTONE).isNotNull()).drop(TOMBSTONE)
    (name,) = key
    given = column(TOMBSTONE).try_cast(rows.schema[name].dataType)
    rows = rows.withColumn(name, F.coalesce(column(name), given)).withColumn(DELETED, column(TOMBSTONE).isNotNull())
    return rows.where(column(name).isNotNull()).drop(TOMBSTONE)


def row_time(rows: DataFrame, event_time: str | None) -> Column:
    """When a row happened, in ms: the event time, or its record's time; null if it has lost both."""
    if event_time is not None and event_time in rows.columns:
        kind = rows.schema[event_time].dataType
        if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
            return F.unix_millis(column(event_time).cast("timestamp"))
    if TIMESTAMP in rows.columns:
        return column(TIMESTAMP)
    return F.lit(None).cast("bigint")


def _nullable(columns: tuple[tuple[str, T.DataType], ...]) -> tuple[tuple[str, T.DataType], ...]:
    return tuple((name, nullable(kind)) for name, kind in columns)


def encoded_state(spec: AggregateSpec) -> list[Column]:
    """The state as stages have it."""
    columns = enumerate(spec.state_columns)
    return [encoded_column(column(name), kind).alias(state_column(number)) for number, (name, kind) in columns]


def _state(spec: AggregateSpec) -> Column:
    return F.struct(*[encoded_column(column(name), kind).alias(name) for name, kind in spec.state_columns])


def records(
    rows: DataFrame, key: Column, value: Column, partition: Column, route: Column, timestamp: Column, *order: Column
) -> DataFrame:
    return rows.select(
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        partition.cast("int").alias("partition"),
        route.cast("binary").alias("route"),
        timestamp.cast("bigint").alias("timestamp"),
        *order,
    )
