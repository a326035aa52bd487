"""Spark's first job, which runs while the program is compiled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark.jobs.session_settings import worker_settings

log = logging.getLogger(__name__)


@contextmanager
def first_job(spark: SparkSession) -> Iterator[None]:
    """Meanwhile Spark runs a job on nothing: it has what it needs for jobs, and Python workers have their imports.

    In the end it is waited for, unless something else has failed.
    """
    job = threading.Thread(target=_run, args=(spark,), name="kohort-first-job", daemon=True)
    job.start()
    yield
    job.join()


def _run(spark: SparkSession) -> None:
    try:
        with worker_settings(spark):
            spark.range(0, 1, 1, 1).mapInArrow(_same, "id bigint").toArrow()
    except Exception:  # whatever it is, the next job meets it
        log.info("Spark could not be warmed up", exc_info=True)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
