"""What somebody means who writes a program as one would for Spark Structured Streaming, and how it is said here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WRITING: Final = 'say .to("topic", key=…) or .for_each_batch(function), and then app.run(spark), which runs it all'
_SHOWING: Final = "a stream never ends, so say .peek(print) to see rows go by, or try it in a test, with TestDriver"
_STATEFUL: Final = "say .group_by(…).process(name, function, output=…, states=…), which keeps state for each group"
_ONE_BY_ONE: Final = "rows of a stream have no order beyond an epoch; say .group_by(…).top(10, by=…) for ranks"
_READ_ONCE: Final = "each record is read once, whatever becomes of it: leave it out"

OF_STREAMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("writeStream", "write", "writeTo", "outputMode", "trigger", "option", "foreach"), _WRITING),
    **dict.fromkeys(("foreachBatch", "forEachBatch"), "say .for_each_batch(function)"),
    **dict.fromkeys(
        ("start", "awaitTermination", "processAllAvailable", "stop"),
        "an application is run as a whole: app.run(spark), and app.stop() from another thread",
    ),
    "withWatermark": 'say event_time= in app.stream(…), and grace= in window("at", "1 hour", grace="10 minutes")',
    **dict.fromkeys(
        ("dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark", "distinct"),
        'say .dedupe("id", within="10 minutes")',
    ),
    **dict.fromkeys(
        (
            "show",
            "collect",
            "take",
            "head",
            "first",
            "tail",
            "toPandas",
            "toArrow",
            "toLocalIterator",
            "display",
            "limit",
        ),
        _SHOWING,
    ),
    **dict.fromkeys(
        ("printSchema", "schema", "columns", "dtypes", "explain"), "app.describe() says what the program is"
    ),
    "count": "it never ends; say .group_by(…).aggregate(name, n=count()) with kohort.spark's count",
    **dict.fromkeys(("orderBy", "sort", "sortWithinPartitions"), _ONE_BY_ONE),
    **dict.fromkeys(("cache", "persist", "unpersist", "checkpoint", "localCheckpoint", "coalesce"), _READ_ONCE),
    "selectExpr": "say .select(…), which takes expressions as text, too",
    **dict.fromkeys(("unionByName", "unionAll"), "say .union(other)"),
    **dict.fromkeys(
        ("createOrReplaceTempView", "createTempView"), "say .transform(lambda df: …), where df may have a view"
    ),
    **dict.fromkeys(("mapGroupsWithState", "flatMapGroupsWithState"), _STATEFUL),
    "isStreaming": "it is a stream; a DataFrame is what .transform(function) gives to its function",
}
"""Of streams, by what is missing: methods of DataFrames and of their writers that would mean something else here."""

OF_GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("agg", "count", "sum", "avg", "mean", "min", "max"),
        "say .aggregate(name, n=count(), total=sum_(column)), with aggregates of kohort.spark",
    ),
    **dict.fromkeys(
        (
            "applyInPandasWithState", "transformWithState", "transformWithStateInPandas", "applyInPandas",
            "applyInArrow", "mapGroupsWithState", "flatMapGroupsWithState",
        ),
        "say .process(name, function, output=…, states=…), whose function gets Arrow tables",
    ),
}  # fmt: skip
"""Of what is grouped."""

OF_APPLICATIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("readStream", "read", "load", "format", "subscribe", "option", "options", "source", "topic", "from_topic"),
        'a topic is read by app.stream("orders", schema="id STRING, …"), without spark.readStream',
    ),
    **dict.fromkeys(
        ("writeStream", "write", "to", "sink"), 'each stream says where it goes: app.stream(…).to("topic", key=…)'
    ),
    **dict.fromkeys(
        ("awaitTermination", "awaitAnyTermination", "streams", "run_forever"),
        "app.run(spark) starts the application, and returns when it is stopped; app.start(spark) returns at once",
    ),
    **dict.fromkeys(("sql", "createDataFrame"), "that is the SparkSession's, which app.run(spark) takes"),
}
"""Of a `StreamsApp`."""


def of_spark(given: object) -> bool:
    """Whether it is one of Spark's own objects, such as a DataFrame, without loading Spark."""
    return type(given).__module__.partition(".")[0] == "pyspark"


def instead_of(given: object) -> str:
    """What to write where a stream or a table is wanted, and something of Spark's is given; "" for anything else."""
    if not of_spark(given):
        return ""
    streams = getattr(given, "isStreaming", None)  # a Column has a field of any name, which is a Column
    if not isinstance(streams, bool):
        return ""
    if streams:
        return "; it is a stream of Spark's own: read its topic by app.stream(topic, schema=…) or app.table"
    return (
        "; a DataFrame that doesn't change is joined or added in a transform, .transform(lambda df: df.join(other, …))"
    )
