"""Kafka topics as DataFrames: `spark.read.format("kohort")` and `df.write.format("kohort")`, without any jar.

Spark finds the data source itself, by the package `pyspark_kohort`.
"""

from __future__ import annotations

from kohort.spark.datasource.source import KohortDataSource

__all__ = ["KohortDataSource"]
