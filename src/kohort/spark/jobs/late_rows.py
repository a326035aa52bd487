"""Which windows rows are in, and which rows come too late for theirs, as Spark expressions.

Here rows are late by the stream time of the task that reads them. `stages.late_partials` counts them, and finds the
partials that are late where they are merged. When a window is closed for good is found by the runtime's window_closing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.errors import ProgramError
from kohort.spark.jobs.column_encoding import column
from kohort.spark.jobs.stages.late_partials import CLOSED
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.internal_columns import STREAM_TIME, WINDOW_START
from kohort.spark.program.sliding_windows import SlidingSpec
from kohort.spark.program.windows import WindowSpec


def with_windows(rows: DataFrame, window: WindowSpec) -> DataFrame:
    """Each row with `_window`, once for each window that it is in.

    Those without a time are in none, nor are those out of years 1 to 9999, whose windows wouldn't sort by time as text:
    a time in milliseconds taken for seconds, say.

    One that has no end has all rows from its beginning on.

    A window that has a grace takes no row at whose stream time, the row's own time included, its end and the grace are
    over.

    Raises:
        ProgramError: there is a grace, and the rows have lost their stream time.
    """
    if isinstance(window, SlidingSpec):
        return rows  # its processor has found the windows
    time = F.unix_millis(column(window.column).cast("timestamp"))
    if window.since_ms is not None:
        since = F.lit(window.since_ms).cast("bigint")
        return rows.withColumn(WINDOW_START, F.when(time.between(since, LAST_MS), since))
    possible = time.between(FIRST_MS + window.size_ms, LAST_MS)
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
    return rows.withColumn(WINDOW_START, F.when(closed, CLOSED).otherwise(column(WINDOW_START)))
