"""Which plans may run again and again, and the settings under which that is so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kohort.spark.internals import PlanNode, analyzed, executed

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
    plan = analyzed(frame)
    if plan.has_random_numbers or plan.has_subqueries or plan.reads_clock:
        return False
    return _runs_again(executed(frame))


def keeps_splits(frame: DataFrame) -> bool:
    """Whether each split's rows stay together and in order: nothing is shuffled, joined or united."""
    node = executed(frame)
    while len(node.children) == 1 and not node.is_exchange:
        (node,) = node.children
    return not node.children and not node.is_exchange


def _runs_again(node: PlanNode) -> bool:
    return not node.is_exchange and all(map(_runs_again, node.children))
