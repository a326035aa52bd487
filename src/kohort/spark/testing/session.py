"""A local Spark session that starts quickly, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kohort.client.column_codec import load_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    # What is run for seconds isn't worth the second compiler's time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def without_warnings_of_pandas() -> Iterator[None]:
    """Meanwhile Spark doesn't warn that pandas is newer than it: tests often make errors of warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def active_session() -> SparkSession | None:
    """The session that there is, if there is one."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def local_session(cores: int = 2) -> SparkSession:
    """The session that there is; or a new one in this process, with little of everything, so that it starts quickly.

    Args:
        cores: that a new one uses.
    """
    from pyspark.sql import SparkSession

    if (active := active_session()) is not None:
        return active
    load_columns()  # Spark's JVM takes seconds to start, in which this is ready
    builder = SparkSession.builder.master(f"local[{cores}]").appName("kohort-tests")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
