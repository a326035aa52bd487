"""Streams applications in PySpark: programs whose tasks a streams group places, with state, standbys and exactly-once.

    from kohort.spark import StreamsApp, avg, count, window

Nothing is imported before it is asked for: a worker that only fetches loads no Spark.

This file alone is in every installation; the rest is in the distribution kohort-spark, which the extra `spark` brings.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kohort.extras import ARROW, PIPELINE, require

if TYPE_CHECKING:
    from kohort.schema_registry.registry import SchemaRegistry
    from kohort.spark.app import StreamsApp
    from kohort.spark.errors import ApplicationError, ProgramError
    from kohort.spark.program.aggregates import (
        Aggregation,
        aggregation,
        approx_distinct,
        approx_percentile,
        avg,
        collect,
        collect_max,
        count,
        count_distinct,
        count_if,
        first,
        last,
        max_,
        min_,
        stddev,
        sum_,
        variance,
    )
    from kohort.spark.program.cogroups import CogroupedStreams, cogroup
    from kohort.spark.program.compiled import Program
    from kohort.spark.program.emission import at_most_every
    from kohort.spark.program.error_policies import DeadLetter, Drop, Fail
    from kohort.spark.program.session_windows import session, unlimited
    from kohort.spark.program.settings import AppSettings
    from kohort.spark.program.sliding_windows import sliding
    from kohort.spark.program.state_definitions import list_state, map_state, value_state
    from kohort.spark.program.streams import Aggregated, DerivedTable, GlobalTable, GroupedStream, Stream, Table
    from kohort.spark.program.windows import window
    from kohort.spark.state.errors import StateDirectoryError

__all__ = [
    "Aggregated", "Aggregation", "AppSettings", "ApplicationError", "CogroupedStreams", "DeadLetter", "DerivedTable",
    "Drop", "Fail", "GlobalTable", "GroupedStream", "Program", "ProgramError", "SchemaRegistry", "StateDirectoryError",
    "Stream", "StreamsApp", "Table", "aggregation", "approx_distinct", "approx_percentile", "at_most_every", "avg",
    "cogroup", "collect", "collect_max", "count", "count_distinct", "count_if", "first", "last", "list_state",
    "map_state", "max_", "min_", "session", "sliding", "stddev", "sum_", "unlimited", "value_state", "variance",
    "window",
]  # fmt: skip

require("spark", "kohort.spark", (PIPELINE, *ARROW, "pyspark"))

# Spark starts its Python workers with "python3" unless told otherwise: on one machine often another Python than this
# one, without the packages that are installed here. It is asked for when Spark's JVM starts, so it is set here, where a
# program that uses Kohort comes by before it makes a session. Clusters have it set (spark-submit does so from
# spark.pyspark.python), and then it stays.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

_STREAMS: Final = ("Aggregated", "DerivedTable", "GlobalTable", "GroupedStream", "Stream", "Table")
_HOME: Final = {
    "StreamsApp": "app",
    "AppSettings": "program.settings",
    "ApplicationError": "errors",
    "ProgramError": "errors",
    "DeadLetter": "program.error_policies",
    "Drop": "program.error_policies",
    "Fail": "program.error_policies",
    "Program": "program.compiled",
    "at_most_every": "program.emission",
    "SchemaRegistry": ".schema_registry.registry",  # of the base, as the console asks registries, too
    "StateDirectoryError": "state.errors",
    "sliding": "program.sliding_windows",
    **dict.fromkeys(("session", "unlimited"), "program.session_windows"),
    "window": "program.windows",
    **dict.fromkeys(("list_state", "map_state", "value_state"), "program.state_definitions"),
    **dict.fromkeys(("CogroupedStreams", "cogroup"), "program.cogroups"),
    **dict.fromkeys(_STREAMS, "program.streams"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME.get(name, 'program.aggregates')}", __name__), name)
