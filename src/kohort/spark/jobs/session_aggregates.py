"""The aggregates of sessions: as those of windows, but what there is of sessions that become one is merged."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.epoch import SHOWN
from kohort.spark.jobs.column_encoding import column
from kohort.spark.jobs.stages.context import StageContext
from kohort.spark.jobs.stages.session_lookup import session_lookup_stage
from kohort.spark.jobs.terminals import (
    decoded_state,
    encoded_state,
    group_value,
    partials,
    records,
    state_lookup_of,
    state_lookup_schema,
    with_nulls,
)
from kohort.spark.program.compiled import AggregateSpec
from kohort.spark.program.internal_columns import (
    ABSORBED,
    CHANGE,
    KEY,
    PARTITION,
    RECORDS,
    SESSION,
    TIMESTAMP,
    WINDOW_START,
)
from kohort.spark.program.operations import Change

_INTERNAL = (PARTITION, KEY, TIMESTAMP, RECORDS)


def session_partials(rows: DataFrame, spec: AggregateSpec) -> DataFrame:
    """Rows as `SessionsProcessor` gives them, combined by session: as `partials`, with `CHANGE` and `ABSORBED`."""
    more = [F.max(CHANGE).alias(CHANGE), F.max(ABSORBED).alias(ABSORBED)]
    return partials(rows.withColumn(WINDOW_START, column(SESSION)), spec, PARTITION, aggregated=more)


def session_aggregated(rows: DataFrame, spec: AggregateSpec, context: StageContext) -> DataFrame:
    """Such rows, merged with the store; `SHOWN` are those that outputs get."""
    encoded = session_partials(rows, spec).select(*_INTERNAL, CHANGE, ABSORBED, *encoded_state(spec))
    fields = state_lookup_schema(spec).fields
    change = T.StructField(CHANGE, T.IntegerType())
    schema = T.StructType([*fields[: len(_INTERNAL)], change, *fields[len(_INTERNAL) :]])
    parts = encoded.mapInArrow(session_lookup_stage(context, state_lookup_of(spec)), schema)
    spec = with_nulls(spec)
    plain = parts.select(PARTITION, KEY, TIMESTAMP, CHANGE, *decoded_state(spec))
    internal = [F.max(TIMESTAMP).alias(TIMESTAMP), F.max(CHANGE).alias(CHANGE)]
    by_key = plain.groupBy(PARTITION, KEY).agg(*internal, *spec.merge_columns())
    there = column(CHANGE).isin(int(Change.GROWN), int(Change.FINAL), int(Change.CLOSED))
    shown = (Change.FINAL, Change.CLOSED) if spec.emit == "close" else (Change.GROWN, Change.ABSORBED)
    value = F.when(there, group_value(spec))
    is_shown = column(CHANGE).isin(*map(int, shown)).alias(SHOWN)
    return records(by_key, column(KEY), value, column(PARTITION), F.lit(None), column(TIMESTAMP), is_shown)
