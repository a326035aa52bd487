"""Spark's Python workers have Kohort's imports from the process that they are forked from."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.jobs.worker_daemon import MODULE

LATE = "kohort.spark.jobs.stages.read_rows"


def parents(spark: SparkSession) -> str:
    """The command line of the process that a worker was forked from; with "!" if the worker has a stage imported."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            command = Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " ")
            yield pa.RecordBatch.from_pydict({"found": [command + ("!" if LATE in sys.modules else "")]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(look, "found STRING").collect()
    return str(row.found)


def test_workers_are_forked_with_imports_while_an_application_runs(spark: SparkSession) -> None:
    with session_settings(spark, 2):
        assert f" -m {MODULE} pyspark.worker" in parents(spark) and parents(spark).endswith("!")
    assert " -m pyspark.daemon pyspark.worker" in parents(spark)


def test_a_daemon_that_the_user_chose_stays(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.python.daemon.module", "pyspark.daemon")
    try:
        with session_settings(spark, 2):
            assert " -m pyspark.daemon pyspark.worker" in parents(spark)
        assert conf.get("spark.python.daemon.module") == "pyspark.daemon"
    finally:
        conf.remove("spark.python.daemon.module")


def test_with_threads_that_a_fork_would_lose_it_is_the_plain_daemon() -> None:
    threaded = (
        "import threading; from kohort.spark.jobs import worker_daemon; "
        "threading.Thread(target=threading.Event().wait, daemon=True).start(); worker_daemon.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", threaded], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    with process:
        (port,) = struct.unpack(">i", process.stdout.read(4))
        command = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        process.stdin.close()
    assert port > 0
    assert command[1:3] == ["-m", "pyspark.daemon"]
