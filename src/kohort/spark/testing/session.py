"""A local Spark session that starts quickly, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kohort.client.column_codec import load_columns
from kohort.spark.class_archive import jvm_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
# What is run for seconds isn't worth the second compiler's time.
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


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


def local_session(cores: int = 2, *, jvm: str | None = None) -> SparkSession:
    """The session that there is; or a new one in this process, with little of everything, so that it starts quickly.

    Args:
        cores: that a new one uses.
        jvm: more options of its JVM; by default those that use an archive of Spark's classes, if there is one
            (`kohort apps class-archive`).
    """
    from pyspark.sql import SparkSession

    if (active := active_session()) is not None:
        return active
    load_columns()  # Spark's JVM takes seconds to start, in which this is ready
    builder = SparkSession.builder.master(f"local[{cores}]").appName("kohort-tests")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    more = jvm_options() if jvm is None else jvm
    builder = builder.config("spark.driver.extraJavaOptions", f"{_QUICK_JVM} {more}".strip())
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
