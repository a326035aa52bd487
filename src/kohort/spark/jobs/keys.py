"""Keys as Spark expressions: of stores, of topics, and of what a record is partitioned by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.jobs.stages.common import LAST_MS
from kohort.spark.jobs.wire import JSON_OPTIONS, column
from kohort.spark.program.compiled import AggregateSpec, Route
from kohort.spark.program.windows import WindowSpec

WINDOW_START: Final = "_window"
"""BIGINT: where a row's window begins, in ms since 1970."""

_FIRST_MS: Final = -62_135_596_800_000
"""The beginning of the year 1."""

_WINDOW_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def key_text(names: Sequence[str], route: Route) -> Column:
    """The columns as a key: the text of one, or a JSON object."""
    if route is Route.TEXT and len(names) == 1:
        return column(names[0]).cast("string")
    return _object([column(name).alias(name) for name in names])


def store_key(spec: AggregateSpec) -> Column:
    """An aggregate's key, of rows with the grouped columns and, for windows, `_window`."""
    fields = [column(name).alias(name) for name in spec.group_names]
    if spec.window is not None:
        start = F.date_format(F.timestamp_millis(column(WINDOW_START)), _WINDOW_FORMAT)
        fields.insert(0, start.alias("window"))
    return _object(fields)


def with_windows(rows: DataFrame, window: WindowSpec) -> DataFrame:
    """Each row with `_window`, once for each window that it is in.

    Those without a time are in none, nor are those out of years 1 to 9999, whose windows wouldn't sort by time as text:
    a time in milliseconds taken for seconds, say.
    """
    time = F.unix_millis(column(window.column).cast("timestamp"))
    last = time - F.pmod(time, F.lit(window.slide_ms))
    rows = rows.where(time.between(_FIRST_MS + window.size_ms, LAST_MS))
    if window.slide_ms == window.size_ms:
        return rows.withColumn(WINDOW_START, last)
    count = -(-window.size_ms // window.slide_ms)
    first = last - (count - 1) * window.slide_ms
    starts = F.explode(F.sequence(first, last, F.lit(window.slide_ms)))
    return rows.withColumn(WINDOW_START, starts).where(column(WINDOW_START) + window.size_ms > time)


def _object(fields: Sequence[Column]) -> Column:
    if not fields:
        return F.lit("{}")
    return F.to_json(F.struct(*fields), JSON_OPTIONS)
