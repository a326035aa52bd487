"""Which plans may run again and again, and the settings under which that is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

_CLOCK: Final = re.compile(r"\b(current_timestamp|current_date|current_time|now|localtimestamp|localtime)\(")
_ALL_FIELDS: Final = 100_000
_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_HASHED: Final = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
_HASHED_AT_LEAST: Final = 128  # Spark's own
_HEAP_BYTES: Final = 256 * 1024 * 1024
"""What sketches may take of the heap: a quarter of the least that a driver has."""


@contextmanager
def session_settings(spark: SparkSession, parallelism: int, group_bytes: int = _HEAP_BYTES) -> Iterator[None]:
    """The session's settings while an application runs; afterwards they are what they were.

    Args:
        spark: the user's session.
        parallelism: how many splits a large epoch has to begin with; see `shuffle_into`.
        group_bytes: of the JVM's heap, that a group of the largest aggregate takes.
    """
    settings = {
        # Plans aren't to change while they run, so that those without an exchange may run again.
        "spark.sql.adaptive.enabled": "false",
        _SHUFFLE: str(parallelism),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # For sketches of more groups than that rows are sorted instead of hashed, which takes longer but less memory.
        _HASHED: str(max(_HASHED_AT_LEAST, _HEAP_BYTES // (parallelism * max(group_bytes, 1)))),
    }
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, wanted in settings.items():
            spark.conf.set(name, wanted)
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def shuffle_into(spark: SparkSession, parallelism: int) -> None:
    """Have plans that are made from now on shuffle into so many partitions; within `session_settings`."""
    if spark.conf.get(_SHUFFLE) != str(parallelism):
        spark.conf.set(_SHUFFLE, str(parallelism))


def is_reusable(frame: DataFrame) -> bool:
    """Whether running this plan again computes everything again.

    What went through an exchange or came from a subquery would be taken from the first run; the current time and the
    seeds of random numbers are chosen once a plan.
    """
    execution = frame._jdf.queryExecution()
    analyzed = execution.analyzed()
    patterns = getattr(frame.sparkSession._jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")
    fixed = (patterns.EXPRESSION_WITH_RANDOM_SEED(), patterns.PLAN_EXPRESSION())
    if any(analyzed.containsPattern(each) for each in fixed):
        return False
    if _CLOCK.search(analyzed.treeString(True, False, _ALL_FIELDS, False, False)):
        return False
    return _runs_anew(execution.executedPlan())


def keeps_splits(frame: DataFrame) -> bool:
    """Whether each split's rows stay together and in order: nothing is shuffled, joined or united."""
    node = frame._jdf.queryExecution().executedPlan()
    while node.children().size() == 1:
        if _is_exchange(node):
            return False
        node = node.children().apply(0)
    return bool(node.children().size() == 0)


def _is_exchange(node: Any) -> bool:
    name = node.nodeName()
    return "Exchange" in name or "Adaptive" in name or "QueryStage" in name


def _runs_anew(node: Any) -> bool:
    if _is_exchange(node) or "Subquery" in node.nodeName():
        return False
    children = node.children()
    return all(_runs_anew(children.apply(number)) for number in range(children.size()))
