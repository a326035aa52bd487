"""Aggregates whose partial results merge: the only ones that a stream can keep."""

from __future__ import annotations

from kohort.spark.program.aggregates.base import Aggregation
from kohort.spark.program.aggregates.collect_max import collect_max
from kohort.spark.program.aggregates.custom import aggregation
from kohort.spark.program.aggregates.distinct import count_distinct
from kohort.spark.program.aggregates.moments import avg, stddev, variance
from kohort.spark.program.aggregates.ordered import collect, first, last
from kohort.spark.program.aggregates.simple import count, count_if, max_, min_, sum_
from kohort.spark.program.aggregates.sketches import approx_distinct, approx_percentile

__all__ = [
    "Aggregation", "aggregation", "approx_distinct", "approx_percentile", "avg", "collect", "collect_max", "count",
    "count_distinct", "count_if", "first", "last", "max_", "min_", "stddev", "sum_", "variance",
]  # fmt: skip
