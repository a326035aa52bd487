"""Spark's first job, which runs while the program is compiled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark.internals import unix_sockets_to_workers

log = logging.getLogger(__name__)


@contextmanager
def first_job(spark: SparkSession) -> Iterator[None]:
    """Meanwhile Spark runs a job on nothing: its scheduler's classes are loaded, and a Python worker has its imports.

    In the end it is waited for, unless something else has failed.
    """
    job = threading.Thread(target=_run, args=(spark,), name="kohort-first-job", daemon=True)
    job.start()
    yield
    job.join()


def _run(spark: SparkSession) -> None:
    try:
        with unix_sockets_to_workers(spark):
            spark.range(0, 1, 1, 1).mapInArrow(_ready, "id bigint").toArrow()
    except Exception:  # whatever it is, the next job meets it
        log.info("Spark could not be warmed up", exc_info=True)


def _ready(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A stage that loads what others need."""
    from kohort.client.column_codec import load_columns
    from kohort.spark.jobs.stages import merge, read_rows  # noqa: F401

    load_columns()
    yield from batches
