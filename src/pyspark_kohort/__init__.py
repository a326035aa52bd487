"""Registers the data source "kohort": Spark imports every package whose name begins with `pyspark_`."""

from __future__ import annotations

from kohort.spark.datasource import KohortDataSource as DefaultSource

__all__ = ["DefaultSource"]
