"""What becomes of rows at a branch's end: DataFrames of `ROWS_SCHEMA`, some with columns more for their order."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.internals import arrow_schema
from kohort.spark.jobs.column_encoding import JSON_OPTIONS, column, from_wire, nullable, shown, to_wire, wire_schema
from kohort.spark.jobs.epoch import NO_WINDOW
from kohort.spark.jobs.key_encoding import WINDOW_START, key_text, store_key, with_windows
from kohort.spark.jobs.plan_reuse import keeps_splits
from kohort.spark.jobs.stages.arrow_aggregate import WINDOW, ArrowAggregating, arrow_aggregate_stage
from kohort.spark.jobs.stages.common import KEY, LATE, PARTITION, RECORDS, STREAM_TIME, TIMESTAMP, Place, numbered
from kohort.spark.jobs.stages.encode_values import Encoding, encode_stage
from kohort.spark.jobs.stages.state_lookup import StateLookup, priors_stage, state_column
from kohort.spark.program.aggregate_specs import with_offset
from kohort.spark.program.compiled import AggregateSpec, Route, ToPartials, ToRows, ToTopic

_LONG = T.LongType()


def to_topic(rows: DataFrame, end: ToTopic, event_time: str | None) -> DataFrame:
    """Rows as records of a topic of the user's."""
    names = list(end.columns)
    key = F.lit(None).cast("string") if end.key is None else key_text(end.key, Route.TEXT)
    if end.format == "json":
        fields = [shown(column(name), rows.schema[name].dataType).alias(name) for name in names]
        value = F.to_json(F.struct(*fields), JSON_OPTIONS)
        return _records(rows, key, value, F.lit(None), F.lit(None), row_time(rows, event_time))
    own = [key.alias(KEY), row_time(rows, event_time).alias(TIMESTAMP)]
    wanted = rows.select(*own, *[column(name).alias(numbered(number)) for number, name in enumerate(names)])
    schema = T.StructType([rows.schema[name] for name in names])
    encoding = Encoding(end.format, schema.json(), end.avro_schema)
    encoded = wanted.mapInArrow(encode_stage(encoding), f"`{KEY}` string, value binary, `{TIMESTAMP}` bigint")
    return _records(encoded, column(KEY), column("value"), F.lit(None), F.lit(None), column(TIMESTAMP))


def to_rows(rows: DataFrame, end: ToRows) -> DataFrame:
    """Rows as records of a repartition topic, in wire types."""
    # Rows without a key belong together as others do. Records without one would be dealt to any partitions.
    key = F.coalesce(key_text(end.key, Route.TEXT), F.lit(""))
    fields = [to_wire(column(field.name), field.dataType).alias(field.name) for field in end.schema.fields]
    value = F.to_json(F.struct(*fields), JSON_OPTIONS)
    time = row_time(rows, end.event_time)
    order = [column(name) for name in (STREAM_TIME, PARTITION) if end.timed and name in rows.columns][:1]
    return _records(rows, key, value, F.lit(None), F.lit(None), time, *order)


def partials(rows: DataFrame, spec: AggregateSpec, *more: str) -> DataFrame:
    """Rows combined by key: `more` columns, `_key`, `_time`, `_records`, the state columns in their own types."""
    if spec.by_arrival:
        rows = with_offset(rows)
    if spec.window is not None:
        rows = with_windows(rows, spec.window)
    group = [*more, *([WINDOW_START] if spec.window is not None else []), *spec.group_names]
    time = row_time(rows, spec.event_time)
    if STREAM_TIME in rows.columns:
        # A row that lies in its partition by chance may be ahead of it, and isn't to close windows further on, either.
        time = F.least(time, F.coalesce(column(STREAM_TIME), F.lit(0)))
    counted = [F.count(F.lit(1)).alias(RECORDS), F.max(time).alias(TIMESTAMP)]
    combined = rows.groupBy(*[column(name) for name in group]).agg(*counted, *spec.partial_columns())
    if not group:
        combined = combined.where(column(RECORDS) > 0)  # without rows there would be one group all the same
    return combined.withColumn(KEY, store_key(spec))


def to_partials(rows: DataFrame, end: ToPartials) -> DataFrame:
    """Rows as partials of a repartition topic; of those that no window takes the value is just their number."""
    spec = end.aggregate
    combined = partials(rows, spec)
    value = F.to_json(F.struct(column(RECORDS).alias("records"), _state(spec).alias("state")), JSON_OPTIONS)
    if spec.window is not None:
        value = F.when(column(KEY).isin(LATE, NO_WINDOW), column(RECORDS).cast("string")).otherwise(value)
    route = key_text(spec.routed_by, spec.route)
    # By their times, so that none comes after one that closes its window: see `kohort.spark.jobs.stages.state_lookup`.
    graced = spec.window is not None and spec.window.grace_ms is not None
    order = [column(TIMESTAMP).alias(STREAM_TIME)] if graced else []
    return _records(combined, column(KEY), value, F.lit(None), route, column(TIMESTAMP), *order)


def priors_of(spec: AggregateSpec) -> StateLookup:
    """What stages must know of an aggregate's store."""
    window = spec.window
    closed_after = None
    if window is not None and window.grace_ms is not None:
        closed_after = window.size_ms + window.grace_ms if spec.emit == "close" else window.retention_ms
    return StateLookup(spec.name, arrow_schema(wire_schema(spec.state_columns)), closed_after)


def priors_schema(spec: AggregateSpec) -> T.StructType:
    """`StateLookup.schema`, as Spark's."""
    own = [(PARTITION, T.IntegerType()), (KEY, T.StringType()), (TIMESTAMP, _LONG), (RECORDS, _LONG)]
    wired = wire_schema(spec.state_columns)
    state = [(state_column(number), field.dataType) for number, field in enumerate(wired.fields)]
    return T.StructType([T.StructField(name, kind) for name, kind in (*own, *state)])


def aggregated_rows(rows: DataFrame, spec: AggregateSpec, place: Place) -> DataFrame:
    """Rows of the aggregate's own tasks, merged with the store."""
    combined = partials(rows, spec, PARTITION)
    columns = enumerate(spec.state_columns)
    state = [to_wire(column(name), kind).alias(state_column(number)) for number, (name, kind) in columns]
    wired = combined.select(PARTITION, KEY, TIMESTAMP, RECORDS, *state)
    return merged(wired.mapInArrow(priors_stage(place, priors_of(spec)), priors_schema(spec)), spec)


def merged(wired: DataFrame, spec: AggregateSpec) -> DataFrame:
    """Partials and prior values in wire types (`StateLookup.schema`) as records of the store."""
    # What was read can't be cast to types without nulls, which the state and results of plain rows may have.
    spec = replace(spec, state_columns=_nullable(spec.state_columns), output_columns=_nullable(spec.output_columns))
    columns = enumerate(spec.state_columns)
    state = [from_wire(column(state_column(number)), kind).alias(name) for number, (name, kind) in columns]
    plain = wired.select(PARTITION, KEY, TIMESTAMP, *state)
    whole = plain.groupBy(PARTITION, KEY).agg(F.max(TIMESTAMP).alias(TIMESTAMP), *spec.merge_columns())
    kinds = zip(spec.finish_columns(), spec.output_columns, strict=True)
    results = [shown(result, kind).alias(name) for result, (name, kind) in kinds]
    value = F.to_json(F.struct(*results, _state(spec).alias("state")), JSON_OPTIONS)
    return _records(whole, column(KEY), value, column(PARTITION), F.lit(None), column(TIMESTAMP))


def arrow_aggregated(rows: DataFrame, spec: AggregateSpec, place: Place) -> DataFrame:
    """Rows of the aggregate's own tasks, given to the user's function, as records of the store.

    No partition is divided among splits (`RowsReading.whole`), so the function sees its rows in order.
    """
    arrow = spec.arrow
    assert arrow is not None
    if spec.window is not None:
        rows = with_windows(rows, spec.window)
        rows = rows.withColumn(WINDOW, F.timestamp_millis(WINDOW_START))
    own = [column(PARTITION), store_key(spec).alias(KEY), row_time(rows, spec.event_time).alias(TIMESTAMP)]
    given = rows.select(*own, *[column(name).alias(numbered(at)) for at, name in enumerate(arrow.rows.names)])
    if not keeps_splits(given):  # a shuffle loses the order of rows, so there is one only if it must be
        given = given.repartition(place.splits, PARTITION) if place.splits > 1 else given.coalesce(1)
    keys = (*([WINDOW] if spec.window is not None else []), *spec.group_names)
    aggregating = ArrowAggregating(
        spec.name,
        arrow.function,
        arrow_schema(arrow.rows),
        keys,
        arrow_schema(arrow.state),
        priors_of(spec),
    )
    fields = [T.StructField(PARTITION, T.IntegerType()), T.StructField(TIMESTAMP, _LONG), T.StructField(RECORDS, _LONG)]
    fields += [arrow.rows[name] for name in keys] + list(arrow.state.fields)
    done = given.mapInArrow(arrow_aggregate_stage(place, aggregating), T.StructType(fields))
    if spec.window is not None:
        done = done.withColumn(WINDOW_START, F.unix_millis(column(WINDOW)))
    state = [shown(column(name), kind).alias(name) for name, kind in spec.state_columns]
    value = F.to_json(F.struct(*state, _state(spec).alias("state")), JSON_OPTIONS)
    return _records(done, store_key(spec), value, column(PARTITION), F.lit(None), column(TIMESTAMP))


def table_records(rows: DataFrame, schema: T.StructType, key: tuple[str, ...], tombstone: str) -> DataFrame:
    """A table's records for its store; those with a `tombstone` delete: it is their key, or has the key's columns."""
    fields = [to_wire(column(field.name), field.dataType).alias(field.name) for field in schema.fields]
    gone = column(tombstone).isNotNull()
    value = F.when(~gone, F.to_json(F.struct(*fields), JSON_OPTIONS))
    text = key_text(key, Route.TEXT)
    if len(key) == 1:
        text = F.when(gone, column(tombstone)).otherwise(text)
    return _records(rows, text, value, column(PARTITION), F.lit(None), column(TIMESTAMP))


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


def _state(spec: AggregateSpec) -> Column:
    return F.struct(*[to_wire(column(name), kind).alias(name) for name, kind in spec.state_columns])


def _records(
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
