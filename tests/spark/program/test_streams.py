"""What is told at once, before there is a Spark session."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kohort.client import ClientConfig
from kohort.spark import (
    DeadLetter,
    Drop,
    Fail,
    ProgramError,
    StreamsApp,
    aggregation,
    approx_distinct,
    approx_percentile,
    avg,
    collect,
    count,
    count_distinct,
    window,
)

SCHEMA = "origin STRING, at TIMESTAMP"
HOUR = window("at", "1 hour")


def stream(app: StreamsApp, **more: Any) -> Any:
    return app.stream("flights", schema=SCHEMA, **more)


class Shown:
    """As PySpark shows a Column, which takes a session to be made."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


WRONG: dict[str, tuple[Callable[[StreamsApp], Any], str]] = {
    "unknown format": (
        lambda app: stream(app, format="xml"),
        "stream 'flights': unknown format 'xml'; Kohort knows json, avro, .*string, raw",
    ),
    "no schema": (lambda app: app.stream("flights"), r"stream 'flights': say the columns, as schema=\"origin STRING"),
    "a topic twice": (
        lambda app: (stream(app), stream(app)),
        "topic 'flights' is read twice: it is a stream already. Keep what app.stream or app.table gave",
    ),
    "a topic as table, too": (
        lambda app: (app.global_table("flights", schema=SCHEMA, key="origin"), stream(app)),
        "topic 'flights' is read twice: it is a table already",
    ),
    "offset reset": (lambda app: stream(app, offset_reset="none"), 'offset_reset=\'none\': "earliest" or "latest"'),
    "a partitioner that isn't": (
        lambda app: stream(app, partitioner="random"),
        r"partitioner='random': \"murmur2\" or \"crc32\"\. Where it is partitioned in another way, say \.repartition",
    ),
    "tombstones": (lambda app: stream(app, tombstones="ignore"), 'tombstones=\'ignore\': "drop" or "keep"'),
    "a policy that isn't": (lambda app: stream(app, on_error="drop"), r"on_error='drop': give Fail\(\), Drop\(\)"),
    "dead letters that come back": (lambda app: stream(app, on_error=DeadLetter("flights")), "they would come back"),
    "a schema registry's": (lambda app: stream(app, avro_schema="{}"), 'avro_schema is for format="avro", not "json"'),
    "a key that is no name": (lambda app: stream(app, key=5), "stream 'flights': key: takes names of columns, not 5"),
    "dead letters of a global table": (
        lambda app: app.global_table("t", schema=SCHEMA, key="origin", on_error=DeadLetter("dead")),
        r"global_table 't': it can't have dead letters, .*Say on_error=Drop\(\) or on_error=Fail\(\)",
    ),
    "dead letters nowhere": (
        lambda app: stream(app, on_error=DeadLetter("a/b")),
        r"stream 'flights': DeadLetter\(topic\)='a/b': a name is made of letters",
    ),
    "a key twice": (lambda app: stream(app, key=("origin", "origin")), "key: 'origin' is named twice"),
    "a name with blanks": (
        lambda app: app.table("t", schema=SCHEMA, key="origin", name="my table"),
        "table 't': name='my table': a name is made of letters, digits, '.', '_' and '-'",
    ),
    "no function": (lambda app: stream(app).transform("origin"), "transform takes a function .*, not 'origin'"),
    "a join of streams": (
        lambda app: stream(app).join(app.stream("other", schema=SCHEMA)),
        "streams are joined by time, too: stream.join_stream",
    ),
    "a join with nothing": (lambda app: stream(app).join(None), r"join takes a table \(app\.table, app\.gl"),
    "an outer join": (
        lambda app: stream(app).join(app.table("t", schema=SCHEMA, key="origin"), how="outer"),
        "join\\(how='outer'\\): a stream is joined to a table \"inner\" or \"left\"",
    ),
    "repartitioned by nothing": (lambda app: stream(app).repartition(), "repartition needs the columns to spread by"),
    "grouped by nothing": (lambda app: stream(app).group_by(HOUR), "group_by needs a column: all rows in one group"),
    "grouped by two windows": (lambda app: stream(app).group_by("origin", HOUR, HOUR), "group_by takes one window"),
    "grouped by a number": (
        lambda app: stream(app).group_by(3),
        "group_by takes names of columns, and window.*, not 3: compute the column in a transform",
    ),
    "grouped by Spark's window": (
        lambda app: stream(app).group_by("origin", Shown("Column<'window(at, '1 hour', '1 hour', '0 second')'>")),
        r"which is Spark's: say window\('at', '1 hour', slide='10 minutes'\) of kohort\.spark",
    ),
    "grouped by a session": (
        lambda app: stream(app).group_by("origin", Shown("Column<'session_window(at, '1 hour')'>")),
        "say session\\('at', '30 minutes'\\) of kohort.spark",
    ),
    "nothing aggregated": (lambda app: stream(app).group_by("origin").aggregate("n"), "'n'\\) computes nothing"),
    "a function not called": (
        lambda app: stream(app).group_by("origin").aggregate("n", n=count),
        r"aggregate\('n', n=…\): count is a function; call it, as in n=count\(\)",
    ),
    "no aggregate": (lambda app: stream(app).group_by("origin").aggregate("n", n=3), "3 is no aggregate of kohort"),
    "a result called state": (
        lambda app: stream(app).group_by("origin").aggregate("n", state=count()),
        "a column can't be called 'state': the store keeps its own state under that name",
    ),
    "a result called as the group": (
        lambda app: stream(app).group_by("origin").aggregate("n", origin=count()),
        "'origin' is grouped by; give 'origin' another name",
    ),
    "a result called as the group, but for its case": (
        lambda app: stream(app).group_by("origin").aggregate("n", Origin=count()),
        "'origin' is grouped by; give 'Origin' another name",
    ),
    "results that differ by their case": (
        lambda app: stream(app).group_by("origin").aggregate("a", n=count(), N=count()),
        "'n' and 'N' are one name for Spark",
    ),
    "emitted at close, without a window": (
        lambda app: stream(app).group_by("origin").aggregate("n", emit="close", n=count()),
        r"emit=\"close\"\) needs a window, or a group would never be complete: group_by\(…, window\(",
    ),
    "emitted at close, without grace": (
        lambda app: stream(app).group_by("origin", HOUR).aggregate("n", emit="close", n=count()),
        r"needs a grace, .* window\(\"at\", …, grace=\"10 minutes\"\)",
    ),
    "emitted when": (lambda app: stream(app).group_by("origin").aggregate("n", emit="now", n=count()), "emit='now'"),
    "an aggregate as XML": (
        lambda app: stream(app).group_by("origin").aggregate("n", n=count()).to("out", format="xml"),
        r"to\('out'\): unknown format 'xml'; Kohort knows json, .*string, raw",
    ),
    "an aggregate with a JSON schema": (
        lambda app: stream(app).group_by("origin").aggregate("n", n=count()).to("out", schema="{}"),
        'a schema is for format="avro"',
    ),
    "a result called as the window's end": (
        lambda app: stream(app).group_by("origin", window("at", "1 hour", end="n")).aggregate("n", N=count()),
        "'N' is the window's end; give one another name",
    ),
    "a window's end called as its start": (
        lambda app: window("at", "1 hour", end="Window"),
        "the column 'window' is there twice",
    ),
    "a JSON schema": (lambda app: stream(app).to("out", schema="{}"), 'a schema is for format="avro"'),
    "no limit": (lambda app: collect("x", 0), r"collect\('x', limit=0\): the limit is a whole number, 1 or more"),
    "a function to filter by": (
        lambda app: stream(app).where(lambda row: True),  # type: ignore[arg-type]
        r"where takes texts and Columns, not <function .*A function goes into \.transform",
    ),
    "nothing to select": (lambda app: stream(app).select(), r'select needs columns, as \.select\("origin", "dep_delay'),
    "a number as column": (
        lambda app: stream(app).with_columns(n=3),  # type: ignore[arg-type]
        "with_columns takes texts and Columns, not 3",
    ),
    "no columns more": (lambda app: stream(app).with_columns(), r"with_columns needs columns"),
    "no branches": (lambda app: stream(app).branch(), r"branch needs conditions, as \.branch\(late="),
    "the rest, and then more": (
        lambda app: stream(app).branch(rest=None, late="x > 1"),
        r"branch\(rest=None\): what takes all the others comes last",
    ),
    "a peek at nothing": (
        lambda app: stream(app).peek("print"),  # type: ignore[arg-type]
        r"peek takes a function over a pyarrow\.Table, not 'print'",
    ),
    "no topic": (lambda app: stream(app).to(), r'to takes a topic, to\("late"\), or the column that names it'),
    "a topic and a column": (lambda app: stream(app).to("x", column="y"), "or the column that names it"),
    "a topic that is no text": (
        lambda app: stream(app).to(3),  # type: ignore[arg-type]
        r'to\(3\): a topic is a text; where a column names it, say to\(column="its name"\)',
    ),
    "a tombstone without a key": (
        lambda app: stream(app).to("x", tombstone="n = 0"),
        r"to\('x'\): a tombstone deletes its key's value, so say key=, too",
    ),
    "no limit of distinct values": (
        lambda app: count_distinct("x", limit=0),
        r"count_distinct\('x', limit=0\): the limit is a whole number, 1 or more",
    ),
    "a condition that is no text": (
        lambda app: count(where=3),  # type: ignore[arg-type]
        r"where=3: give a condition as text or Column, as \"price < 100\"",
    ),
    "percentages": (lambda app: approx_percentile("x", 90), r"approx_percentile\('x', 90\): .* from 0 to 1, as 0\.9"),
    "a size of a sketch": (lambda app: approx_distinct("x", lg_k=30), "lg_k is a whole number from 4 to 21"),
    "a merge that is no function": (
        lambda app: aggregation(update=count, merge="sum"),  # type: ignore[arg-type]
        r"aggregation\(merge=…\) takes a function of a Column, as F\.max, not 'sum'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_told_at_once(name: str) -> None:
    write, message = WRONG[name]
    with pytest.raises(ProgramError, match=message):
        write(StreamsApp("app"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_standby_replicas": -1}, "num_standby_replicas=-1 must be a whole number, 0 or more"),
        ({"num_standbys": 1}, "StreamsApp has no setting 'num_standbys'; settings are acceptable_recovery_lag, "),
        ({"application_server": "here"}, "application_server='here': HOST:PORT, where other instances reach this one"),
        ({"application_server": "here:-1"}, "application_server='here:-1': HOST:PORT"),
        ({"application_server": ":"}, "application_server=':': HOST:PORT"),
        ({"application_server": "a:0,b:0"}, "application_server='a:0,b:0': HOST:PORT"),
        ({"bootstrap_servers": "nowhere:0"}, "bootstrap_servers: "),
        ({"on_error": "drop"}, "on_error='drop'"),
        ({"replication_factor": 0}, "replication_factor=0 must be a whole number, 1 or more; or -1"),
        ({"replication_factor": "3"}, "replication_factor='3' must be a whole number"),
        ({"state_dir": 5}, "state_dir=5 must be a path"),
        ({"client_tags": {"zone": 1}}, "client_tags={'zone': 1}: names and values"),
        ({"application_server": 8080}, "application_server=8080 must be a text"),
        ({"bootstrap_servers": 9092}, 'bootstrap_servers=9092: "HOST:PORT'),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        StreamsApp("app", **settings)


@pytest.mark.parametrize("name", ["", "my app", "..", "a/b", "x" * 250])
def test_application_ids_make_topics(name: str) -> None:
    with pytest.raises(ProgramError, match="application_id"):
        StreamsApp(name)


def test_settings_are_kept_by_kafka_streams_names() -> None:
    config = ClientConfig(bootstrap_servers="a:1,b:2")
    app = StreamsApp("app", bootstrap_servers=config, application_server="[::1]:8080", state_dir="x", rack_id=None)
    settings = app.settings
    assert (settings.client, settings.endpoint) == (config, ("::1", 8080))
    assert StreamsApp("app", application_server="host:0").settings.endpoint == ("host", 0)  # a free one
    assert settings.state_dir.as_posix() == "x"
    assert (settings.on_error, settings.rack_id, settings.journal) == (Fail(), None, None)


def test_a_source_takes_the_applications_policy_unless_it_has_its_own() -> None:
    app = StreamsApp("app", on_error=Drop())
    app.stream("a", schema=SCHEMA)
    app.table("b", schema=SCHEMA, key="origin", on_error=Fail())
    stream_def, table_def = app._graph.sources
    assert stream_def.on_error == Drop()  # type: ignore[union-attr]
    assert table_def.source.on_error == Fail()  # type: ignore[union-attr]


def test_a_global_table_has_to_say_what_becomes_of_its_bad_records_where_the_application_says_dead_letters() -> None:
    app = StreamsApp("app", on_error=DeadLetter("dead"))
    with pytest.raises(ProgramError, match="nor go by the application's"):
        app.global_table("a", schema=SCHEMA, key="origin")
    app.global_table("a", schema=SCHEMA, key="origin", on_error=Drop())


def test_a_stream_is_used_as_often_as_wanted() -> None:
    app = StreamsApp("app")
    flights = app.stream("flights", schema=SCHEMA)
    assert flights.to("copy") is flights
    flights.group_by("origin").aggregate("n", n=count(), mean=avg("x")).to("a").to("b")
    assert [type(end).__name__ for end in app._graph.ends] == ["SinkDef", "AggregateDef"]


def test_what_isnt_there_says_what_to_write_instead() -> None:
    app = StreamsApp("app")
    flights = stream(app)
    table: Any = app.table("t", schema=SCHEMA, key="origin")
    grouped: Any = flights.group_by("origin")
    aggregated: Any = grouped.aggregate("n", n=count())
    for given, name, told in (
        (flights, "drop", r"Stream has no 'drop': DataFrames have it, so say \.transform\(lambda df: df\.drop"),
        (flights, "withColumn", r"Stream has no 'withColumn': say \.with_columns\(…\)"),
        (flights, "filter", r"Stream has no 'filter': say \.where\(…\)"),
        (flights, "aggregate", r"Stream has no 'aggregate': group it first"),
        (flights, "groupBy", r"say \.group_by\("),
        (flights, "through", "Stream has no 'through': it has transform, where, select, with_columns, branch"),
        (table, "transform", r"Table has no 'transform': .* \.as_stream\(\) gives its rows"),
        (app.global_table("g", schema=SCHEMA, key="origin"), "aggregate", "GlobalTable has no 'aggregate': "),
        (grouped, "transform", r"GroupedStream has no 'transform': .* before \.group_by"),
        (aggregated, "group_by", r"Aggregated has no 'group_by': .* say \.as_stream\(\)"),
    ):
        with pytest.raises(AttributeError, match=told):
            getattr(given, name)
    assert copy.copy(flights)._steps == flights._steps


def test_wrong_turns_of_those_who_come_from_structured_streaming() -> None:
    """Each is an error of a line that says what to write; none is of Spark, or of Python alone."""
    app: Any = StreamsApp("app")
    flights: Any = stream(app)
    grouped: Any = flights.group_by("origin")
    for given, name, told in (
        (app, "readStream", r"StreamsApp has no 'readStream': a topic is read by app\.stream\(.*without spark"),
        (app, "awaitTermination", r"app\.run\(spark\) starts the application"),
        (app, "writeStream", r"each stream says where it goes: app\.stream\(…\)\.to"),
        (app, "nothing", "an application reads topics by stream, table, global_table and queue"),
        (flights, "writeStream", r"Stream has no 'writeStream': say \.to\(.* app\.run\(spark\), which runs it all"),
        (flights, "write", r"say \.to\("),
        (flights, "foreachBatch", r"say \.for_each_batch\(function\)"),
        (flights, "withWatermark", r"event_time= in app\.stream\(…\), and grace="),
        (flights, "dropDuplicates", r"say \.dedupe\("),
        (flights, "show", r"say \.peek\(print\)"),
        (flights, "orderBy", r"\.top\(10, by=…\)"),
        (flights, "start", r"app\.run\(spark\), and app\.stop\(\)"),
        (grouped, "agg", r"GroupedStream has no 'agg': say \.aggregate\(name, n=count\(\)"),
        (grouped, "applyInPandasWithState", r"say \.process\(name, function"),
    ):
        with pytest.raises(AttributeError, match=told):
            getattr(given, name)


class Frame:
    """A DataFrame, as far as a program's methods look at it before Spark does."""

    __module__ = "pyspark.sql.classic.dataframe"

    def __init__(self, streaming: bool = False) -> None:
        self.isStreaming = streaming

    def __repr__(self) -> str:
        return "DataFrame[id: string]"


class Column:
    """A Column, as far as a program's methods look at it: it has a field of any name, and no truth."""

    __module__ = "pyspark.sql.classic.column"

    def __getattr__(self, name: str) -> Column:
        return self

    def __bool__(self) -> bool:
        raise ValueError("CANNOT_CONVERT_COLUMN_INTO_BOOL")

    def __repr__(self) -> str:
        return "Column<'id'>"


def test_a_column_is_no_stream() -> None:
    flights: Any = stream(StreamsApp("app"))
    with pytest.raises(ProgramError, match="not Column<'id'>"):
        flights.join_stream(Column(), "origin", within="1 hour", grace="1 minute")


def test_a_dataframe_is_no_stream_and_no_table() -> None:
    app: Any = StreamsApp("app")
    flights: Any = stream(app)
    static, streaming = Frame(), Frame(streaming=True)
    for call in (
        lambda frame: flights.join(frame, "origin"),
        lambda frame: flights.join_as_of(frame, "origin", history="1 day"),
        lambda frame: flights.join_stream(frame, "origin", within="1 hour", grace="1 minute"),
        lambda frame: flights.union(frame),
    ):
        with pytest.raises(ProgramError, match=r"not DataFrame\[.*\.transform\(lambda df: df\.join\(other, …\)\)"):
            call(static)
        with pytest.raises(ProgramError, match=r"a stream of Spark's own: read its topic by app\.stream\(topic"):
            call(streaming)
    for read in (app.stream, app.table, app.queue):
        with pytest.raises(ProgramError, match="is the name of a topic, which Kohort reads itself, not something of"):
            read(static, schema=SCHEMA, **({"key": "origin"} if read == app.table else {}))
