"""Spark's first job, which runs while the program is compiled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark.internals import is_local
from kohort.spark.jobs.session_settings import worker_settings

log = logging.getLogger(__name__)

_GROUP: Final = "kohort-first-job"
_LOOK_S: Final = 0.1
_LEAVE_S: Final = 1.0


@contextmanager
def first_job(spark: SparkSession, is_stopping: Callable[[], bool]) -> Iterator[None]:
    """Meanwhile Spark runs a job on nothing: it has what it needs for jobs, and Python workers have their imports.

    In the end it is waited for, unless something else has failed, or the application is to stop. On a cluster, where
    the job might wait for executors, there is none.
    """
    job = threading.Thread(target=_run, args=(spark,), name=_GROUP, daemon=True)
    job.start()
    try:
        yield
        while job.is_alive() and not is_stopping():
            job.join(_LOOK_S)
    finally:
        if job.is_alive():
            with suppress(Exception):  # the session may be one that can't run applications, or be stopped
                spark.sparkContext.cancelJobGroup(_GROUP)
            job.join(_LEAVE_S)


def _run(spark: SparkSession) -> None:
    try:
        if is_local(spark):
            with worker_settings(spark):
                spark.sparkContext.setJobGroup(_GROUP, "Spark warms up", interruptOnCancel=True)
                spark.range(0, 1, 1, 1).mapInArrow(_same, "id bigint").toArrow()
    except Exception:  # whatever it is, the next job meets it
        log.info("Spark could not be warmed up", exc_info=True)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
