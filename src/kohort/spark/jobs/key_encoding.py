"""Keys as Spark expressions: of stores, of topics, and of what a record is partitioned by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.jobs.column_encoding import JSON_OPTIONS, column, shown
from kohort.spark.jobs.epoch import NO_WINDOW
from kohort.spark.jobs.stages.common import LAST_MS, LATE, STREAM_TIME
from kohort.spark.program.compiled import AggregateSpec, Route
from kohort.spark.program.errors import ProgramError
from kohort.spark.program.windows import WindowSpec

WINDOW_START: Final = "_window"
"""BIGINT: where a row's window begins, in ms since 1970; null if it can be in none, `_CLOSED` if it comes too late."""

_FIRST_MS: Final = -62_135_596_800_000
"""The beginning of the year 1."""
_CLOSED: Final = _FIRST_MS - 1
"""The `_window` of rows that come after their window is closed."""

_WINDOW_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def key_text(names: Sequence[str], route: Route) -> Column:
    """The columns as a key: the text of one, or a JSON object."""
    if route is Route.TEXT and len(names) == 1:
        return column(names[0]).cast("string")
    return _object([column(name).alias(name) for name in names])


def store_key(spec: AggregateSpec) -> Column:
    """An aggregate's key, of rows with the grouped columns and, for windows, `_window`.

    Of rows that no window takes it is why: `LATE` or `NO_WINDOW`.
    """
    fields = [shown(column(name), kind).alias(name) for name, kind in spec.group]
    if spec.window is None:
        return _object(fields)
    begins = column(WINDOW_START)
    start = F.date_format(F.timestamp_millis(begins), _WINDOW_FORMAT)
    key = _object([start.alias("window"), *fields])
    return F.when(begins > _CLOSED, key).otherwise(F.when(begins.isNull(), NO_WINDOW).otherwise(LATE))


def with_windows(rows: DataFrame, window: WindowSpec) -> DataFrame:
    """Each row with `_window`, once for each window that it is in.

    Those without a time are in none, nor are those out of years 1 to 9999, whose windows wouldn't sort by time as text:
    a time in milliseconds taken for seconds, say.

    A window that has a grace takes no row at whose stream time, the row's own time included, its end and the grace are
    over.

    Raises:
        ProgramError: there is a grace, and the rows have lost their stream time.
    """
    time = F.unix_millis(column(window.column).cast("timestamp"))
    possible = time.between(_FIRST_MS + window.size_ms, LAST_MS)
    last = time - F.pmod(time, F.lit(window.slide_ms))
    if window.slide_ms == window.size_ms:
        rows = rows.withColumn(WINDOW_START, F.when(possible, last))
    else:
        before = time - window.size_ms  # windows that begin here, or earlier, end before the row
        first = before - F.pmod(before, F.lit(window.slide_ms)) + window.slide_ms
        starts = F.when(possible, F.sequence(first, last, F.lit(window.slide_ms)))
        rows = rows.withColumn(WINDOW_START, F.explode_outer(starts))
    if window.grace_ms is None:
        return rows
    if STREAM_TIME not in rows.columns:
        raise ProgramError(
            f"a transform before window({window.column!r}, …) loses the stream time, by which its grace goes: "
            f"say .repartition(…) after the transform"
        )
    closed = column(WINDOW_START) + (window.size_ms + window.grace_ms) <= column(STREAM_TIME)
    return rows.withColumn(WINDOW_START, F.when(closed, _CLOSED).otherwise(column(WINDOW_START)))


def _object(fields: Sequence[Column]) -> Column:
    if not fields:
        return F.lit("{}")
    return F.to_json(F.struct(*fields), JSON_OPTIONS)
