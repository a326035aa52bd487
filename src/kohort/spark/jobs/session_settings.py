"""The settings of the Spark session while an application runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from kohort.spark.internals import unix_sockets_to_workers, workers_forked_from

_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_HASHED: Final = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
_DAEMON: Final = "kohort.spark.worker_daemon"
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
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
        # For sketches of more groups than that rows are sorted instead of hashed, which takes longer but less memory.
        _HASHED: str(max(_HASHED_AT_LEAST, _HEAP_BYTES // (parallelism * max(group_bytes, 1)))),
    }
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, wanted in settings.items():
            spark.conf.set(name, wanted)
        with worker_settings(spark):
            yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@contextmanager
def worker_settings(spark: SparkSession) -> Iterator[None]:
    """How Spark starts its Python workers meanwhile, and talks to them."""
    with unix_sockets_to_workers(spark), workers_forked_from(spark, _DAEMON):
        yield


def shuffle_into(spark: SparkSession, parallelism: int) -> None:
    """Sets into how many partitions plans shuffle that are made from now on; within `session_settings`."""
    if spark.conf.get(_SHUFFLE) != str(parallelism):
        spark.conf.set(_SHUFFLE, str(parallelism))
