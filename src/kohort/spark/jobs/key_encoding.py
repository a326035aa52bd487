"""Keys as Spark expressions: of stores, of topics, and of what a record is partitioned by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.jobs.column_encoding import JSON_OPTIONS, column, shown
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.stages.late_partials import CLOSED, LATE
from kohort.spark.program.compiled import AggregateSpec, Route
from kohort.spark.program.internal_columns import WINDOW_START

_WINDOW_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def key_text(names: Sequence[str], route: Route, called: Sequence[str] | None = None) -> Column:
    """The columns as a key: the text of one, or a JSON object, in which they may be `called` otherwise."""
    if route is Route.TEXT and len(names) == 1:
        return column(names[0]).cast("string")
    return _object([column(name).alias(there) for name, there in zip(names, called or names, strict=True)])


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
    return F.when(begins > CLOSED, key).otherwise(F.when(begins.isNull(), NO_WINDOW).otherwise(LATE))


def _object(fields: Sequence[Column]) -> Column:
    if not fields:
        return F.lit("{}")
    return F.to_json(F.struct(*fields), JSON_OPTIONS)
