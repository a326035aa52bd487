"""Registers the data source "kohort": Spark imports every package whose name begins with `pyspark_`."""

from __future__ import annotations

from contextlib import suppress

from kohort.extras import MissingExtraError

__all__ = ["DefaultSource"]

# Where something is missing that it needs, Spark's other data sources go on working.
with suppress(MissingExtraError):
    from kohort.spark.datasource import KohortDataSource as DefaultSource
