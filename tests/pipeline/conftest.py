"""What tests of the pipeline share: one small Spark session a process, and a broker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.tools import JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .jobs_harness import JobsHarness

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What is run for seconds isn't worth the second compiler's time."""

os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, without a page to look at."""
    JAVA.require()
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("kohort-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def harness(spark: SparkSession) -> Iterator[JobsHarness]:
    from kohort.spark.jobs.session_settings import session_settings
    from kohort.testing.broker import Broker

    from .jobs_harness import JobsHarness

    with Broker() as broker, session_settings(spark, 2):
        harness = JobsHarness(spark, broker)
        with harness.rpc:
            yield harness
