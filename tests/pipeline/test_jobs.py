"""Epochs as Spark jobs, against a broker and beside plain Python."""

from __future__ import annotations

import dataclasses
import gc
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark import StreamsApp
from kohort.spark.epoch import ROWS_SCHEMA, EpochInput, EpochOutput, OffsetRange
from kohort.spark.errors import ProgramError
from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.jobs.column_encoding import (
    JSON_OPTIONS,
    column,
    decoded_column,
    encoded_column,
    encoded_schema,
    shown,
)
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.jobs.plan_reuse import is_reusable
from kohort.spark.jobs.stages.context import StageContext
from kohort.spark.jobs.stages.state_lookup import state_column
from kohort.spark.jobs.terminals import merged, partials
from kohort.spark.program.aggregates import avg, collect, last, max_, sum_
from kohort.spark.program.compiled import (
    Aggregate,
    AggregateSpec,
    ArrowAggregation,
    Branch,
    CompiledSubtopology,
    Join,
    PartialsInput,
    Route,
    RowsInput,
    SourceSpec,
    TableStore,
    Terminal,
    ToPartials,
    TopicInput,
    ToRows,
    ToTopic,
    Transform,
)
from kohort.spark.program.error_policies import DeadLetter, Drop, ErrorPolicy, Fail
from kohort.spark.program.windows import window
from kohort.spark.runtime.epoch_writes import epoch_writes
from kohort.spark.runtime.planning import subtopology_plan_of
from tests.waiting import eventually

from .jobs_harness import JobsHarness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def flight(number: int) -> dict[str, Any]:
    at = f"2013-01-01T{5 + number % 3:02d}:30:00Z"
    return {
        "carrier": "AU"[number % 2] + "A",
        "origin": ["JFK", "EWR", "LGA"][number % 3],
        "delay": number % 7,
        "at": at,
    }


FLIGHTS = [(number % 2, {"k": number % 2}, flight(number)) for number in range(60)]


def expected(group: str, flights: list[dict[str, Any]], hours: int = 1) -> dict[str, Any]:
    """The same aggregate in plain Python."""
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    for each in flights:
        for before in range(hours):
            groups[(int(each["at"][11:13]) - before, each[group])].append(each["delay"])
    found = {}
    for (hour, name), delays in groups.items():
        key = {"window": f"2013-01-01T{hour:02d}:00:00.000Z", group: name}
        delays.sort()
        found[json.dumps(key, separators=(",", ":"))] = {
            **key, "n": len(delays), "mean": pytest.approx(sum(delays) / len(delays)),
            "p50": delays[-(-len(delays) // 2) - 1], "worst": delays[-1],
        }  # fmt: skip
    return found


def through(harness: JobsHarness, source: SourceSpec, end: Terminal, *steps: Any) -> CompiledSubtopology:
    return CompiledSubtopology("0", TopicInput(source), (), (Branch(steps, end),))


@pytest.mark.parametrize("parallel", [False, True])
def test_partials_are_merged_with_the_store_epoch_after_epoch(
    harness: JobsHarness, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parallel:
        monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    spec = harness.spec("by-origin", "origin")
    harness.stores.clear()
    topic, between = harness.topic(), harness.topic()
    first = harness.jobs(through(harness, harness.source(topic), ToPartials(between, spec)))
    second = harness.jobs(
        CompiledSubtopology("1", PartialsInput(between, spec), (), (Branch((), Aggregate(spec, ())),))
    )
    shown: dict[str, Any] = {}
    for epoch, some in enumerate((FLIGHTS[:20], FLIGHTS[20:], [])):
        start, middle = max(harness.ends[topic]), list(harness.ends[between])
        harness.send(topic, some)
        done = first.run(harness.epoch_input(topic, epoch, start))
        assert done.statistics.records == len(some)
        assert done.rows[0].num_rows == len({(row["origin"], row["at"]) for _, _, row in some})
        harness.forward(between, done.rows[0])
        ranges = [OffsetRange(between, number, middle[number], end) for number, end in enumerate(harness.ends[between])]
        merged = second.run(EpochInput(epoch, tuple(ranges)))
        assert merged.statistics.records == done.rows[0].num_rows
        shown = harness.keep(spec.name, merged.rows[0])
    assert shown == expected("origin", [row for _, _, row in FLIGHTS])
    if not parallel:
        assert [*first._reusable, *second._reusable] == [("0", 0, 1, False), ("1", 0, 1, False)]


@pytest.mark.parametrize("sketch", [True, False])
@pytest.mark.parametrize("slide", [None, "30 minutes"])
def test_rows_of_a_tasks_own_are_merged_at_once(harness: JobsHarness, slide: str | None, sketch: bool) -> None:
    """By Spark where there is a sketch, or else beside the store."""
    spec = harness.spec("by-carrier", "carrier", grace="2 hours", slide=slide, sketch=sketch)
    harness.stores.clear()
    topic = harness.topic()
    jobs = harness.jobs(through(harness, harness.source(topic), Aggregate(spec, ())))
    harness.send(topic, FLIGHTS[:20])
    done = jobs.run(harness.epoch_input(topic))
    harness.keep(spec.name, done.rows[0])
    harness.send(topic, FLIGHTS[20:])
    seven = 1_357_023_600_000
    assert done.statistics.max_times == {0: seven + 1_800_000, 1: seven + 1_800_000}
    done = jobs.run(harness.epoch_input(topic, 1, 10, done.statistics.max_times))
    assert done.statistics.late == 0
    shown = harness.keep(spec.name, done.rows[0])
    if slide is None:
        wanted = expected("carrier", [row for _, _, row in FLIGHTS])
        names = ["window", "carrier", *(name for name, _ in spec.output_columns)]
        assert shown == {key: {name: row[name] for name in names} for key, row in wanted.items()}


def test_rows_are_joined_and_written_to_a_topic(harness: JobsHarness) -> None:
    harness.stores.clear()
    topic, names = harness.topic(), harness.topic()
    ddl = "carrier string, name string, founded date, more array<int>"
    table = TableStore("names", harness.source(names, ddl=ddl, event_time=None), "names-changelog")
    harness.send(
        names,
        [(0, b"AA", {"carrier": "AA", "name": "old"}), (0, b"XX", {"carrier": "XX"}), (1, b"UA", {"carrier": "UA"})],
    )
    harness.send(
        names,
        [(0, b"AA", {"carrier": "AA", "name": "American", "founded": "1926-04-15", "more": [1]}), (0, b"XX", None)],
    )
    columns = ("carrier", "origin", "delay", "at", "name", "founded", "more")
    end = ToTopic("out", ("carrier", "origin"), "json", columns)
    select = Transform(lambda df: df.where("delay = 6").drop("unused"))
    subtopology = CompiledSubtopology(
        "0",
        TopicInput(harness.source(topic)),
        (table,),
        (Branch((select, Join(table, ("carrier",), "inner", False)), end),),
    )
    jobs = harness.jobs(subtopology)
    loaded = jobs.run_table(table, harness.epoch_input(names))
    assert loaded.statistics.records == 5
    kept = {row["key"]: row["value"] for row in loaded.rows[0].to_pylist() if row["partition"] == 0}
    american = b'{"carrier":"AA","name":"American","founded":"1926-04-15","more":"[1]"}'
    assert kept == {b"AA": american, b"XX": None}
    harness.stores[("names", 0)] = {b"AA": american}
    harness.send(topic, FLIGHTS)
    done = jobs.run(harness.epoch_input(topic))
    wanted = [row for at, _, row in FLIGHTS if row["delay"] == 6 and row["carrier"] == "AA"]
    assert sorted(map(repr, map(json.loads, done.rows[0]["value"].to_pylist()))) == sorted(
        repr({**row, "at": row["at"][:-1] + ".000Z", "name": "American", "founded": "1926-04-15", "more": [1]})
        for row in wanted
    )
    first = done.rows[0].to_pylist()[0]
    value = json.loads(first["value"])
    assert json.loads(first["key"]) == {"carrier": value["carrier"], "origin": value["origin"]}
    assert (first["partition"], first["route"]) == (None, None)
    assert first["timestamp"] % 3_600_000 == 1_800_000


def test_joined_columns_are_called_as_the_program_says(harness: JobsHarness) -> None:
    """The table's key has other names than the stream's columns, and its JSON those of the table."""
    harness.stores.clear()
    topic, names = harness.topic(), harness.topic()
    source = dataclasses.replace(
        harness.source(names, ddl="line string, airport string, carrier string, delay int", event_time=None),
        key=("line", "airport"),
    )
    table = TableStore("all-names", source, None)
    row = {"line": "AA", "airport": "JFK", "carrier": "American", "delay": 5}
    harness.send(names, [(0, {"line": "AA", "airport": "JFK"}, row)])
    harness.send(topic, FLIGHTS[:12])
    added = (("airport", "hub"), ("carrier", "name"), ("delay", "usual"))
    end = ToTopic("out", None, "json", ("carrier", "delay", "hub", "name", "usual"))
    later = Transform(lambda df: df.where("delay > 0 and (usual is null or usual < 9)"))
    branch = Branch((Join(table, ("carrier", "origin"), "left", True, added), later), end)
    jobs = harness.jobs(CompiledSubtopology("0", TopicInput(harness.source(topic)), (), (branch,)))
    for each in jobs.run_table(table, harness.epoch_input(names)).rows[0].to_pylist():
        harness.stores[("all-names", None)][each["key"]] = each["value"]
    found = [json.loads(value) for value in jobs.run(harness.epoch_input(topic)).rows[0]["value"].to_pylist()]
    wanted = [
        {
            "carrier": each["carrier"], "delay": each["delay"],
            **({"hub": "JFK", "name": "American", "usual": 5} if (each["carrier"], each["origin"]) == ("AA", "JFK")
               else {"hub": None, "name": None, "usual": None}),
        }
        for _, _, each in FLIGHTS[:12] if each["delay"] > 0
    ]  # fmt: skip
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_an_arrow_function_aggregates_repartitioned_rows(harness: JobsHarness) -> None:
    harness.stores.clear()
    topic, between = harness.topic(), harness.topic()
    schema = harness.schema("origin string, delay int, at timestamp")
    first = harness.jobs(through(harness, harness.source(topic), ToRows(between, ("origin",), schema, "at")))
    state = harness.schema("total int, seen array<int>")

    def add(rows: pa.Table, prior: pa.Table) -> pa.Table:
        before = {row["origin"]: row for row in prior.to_pylist()}
        found: dict[str, dict[str, Any]] = {}
        for row in rows.to_pylist():
            old = before.get(row["origin"], {"total": 0, "seen": []})
            mine = found.setdefault(
                row["origin"], {"origin": row["origin"], "total": old["total"], "seen": old["seen"]}
            )
            mine["total"] += row["delay"]
            mine["seen"] = sorted({*mine["seen"], row["delay"]})
        return pa.Table.from_pylist(list(found.values()))

    columns = tuple((field.name, field.dataType) for field in state.fields)
    spec = AggregateSpec(
        "own", (("origin", schema["origin"].dataType),), None, (), "update", "own-changelog", "at",
        ArrowAggregation(add, state, schema), columns, columns, Route.TEXT, ("origin",),
    )  # fmt: skip
    second = harness.jobs(
        CompiledSubtopology("1", RowsInput(between, schema, ("origin",), "at"), (), (Branch((), Aggregate(spec, ())),))
    )
    shown: dict[str, Any] = {}
    for epoch, some in enumerate((FLIGHTS[:20], FLIGHTS[20:])):
        start, middle = max(harness.ends[topic]), list(harness.ends[between])
        harness.send(topic, some)
        rows = first.run(harness.epoch_input(topic, epoch, start)).rows[0]
        assert set(rows["key"].to_pylist()) == {b"JFK", b"EWR", b"LGA"}
        harness.forward(between, rows)
        ranges = [OffsetRange(between, number, middle[number], end) for number, end in enumerate(harness.ends[between])]
        shown = harness.keep("own", second.run(EpochInput(epoch, tuple(ranges))).rows[0])
    assert shown == {
        json.dumps({"origin": origin}, separators=(",", ":")): {
            "origin": origin,
            "total": sum(row["delay"] for _, _, row in FLIGHTS if row["origin"] == origin),
            "seen": sorted({row["delay"] for _, _, row in FLIGHTS if row["origin"] == origin}),
        }
        for origin in ("JFK", "EWR", "LGA")
    }


def test_bad_records_go_where_the_program_says(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, [*FLIGHTS[:4], (1, b"x", b"not JSON"), *FLIGHTS[4:6]])
    end = ToTopic("out", None, "json", ("carrier",))

    def run_epoch(policy: ErrorPolicy) -> EpochOutput:
        return harness.jobs(through(harness, harness.source(topic, policy), end)).run(harness.epoch_input(topic))

    done = run_epoch(Drop())
    assert (done.statistics.records, done.statistics.dropped, done.statistics.dead.num_rows, done.rows[0].num_rows) == (
        7,
        1,
        0,
        6,
    )
    done = run_epoch(DeadLetter("dead"))
    assert done.statistics.dropped == 1
    assert done.statistics.dead.select(["topic", "partition", "offset", "key", "value"]).to_pylist() == [
        {"topic": topic, "partition": 1, "offset": 2, "key": b"x", "value": b"not JSON"}
    ]
    with pytest.raises(BadRecordError, match=rf"{topic}-1 at offset 2"):
        run_epoch(Fail())


@pytest.mark.parametrize("parallel", [False, True])
def test_transforms_may_do_what_moves_rows_about(
    harness: JobsHarness, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row comes once: of streams united with themselves, coalesced, with columns renamed by their places."""
    if parallel:
        monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    topic = harness.topic()
    harness.send(topic, FLIGHTS)

    def moved(rows: DataFrame) -> DataFrame:
        both = rows.where("DELAY < 3").unionByName(rows.where("delay >= 3")).coalesce(1)
        return both.toDF("carrier", "from", "late", "when", "nothing", "_partition")

    end = ToTopic("out", ("carrier",), "json", ("from", "late"))
    jobs = harness.jobs(through(harness, harness.source(topic), end, Transform(moved)))
    done = jobs.run(harness.epoch_input(topic))
    assert done.statistics.records == len(FLIGHTS)
    found = sorted((row["from"], row["late"]) for row in map(json.loads, done.rows[0]["value"].to_pylist()))
    assert found == sorted((row["origin"], row["delay"]) for _, _, row in FLIGHTS)


def test_each_row_is_in_the_first_branch_whose_condition_is_true(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, [*FLIGHTS[:20], (0, b"", {"carrier": "XX"})])
    app = StreamsApp("app")
    branches = app.stream(topic, schema="carrier string, delay int").branch(
        late="delay > 3", some=F.col("delay") > 1, rest=None
    )
    for name, stream in branches.items():
        stream.with_columns(branch=f"'{name}'").select("branch", "delay").to("out")
    (subtopology,) = app.compile(harness.spark).subtopologies
    done = harness.jobs(subtopology).run(harness.epoch_input(topic))
    delays = [row["delay"] for _, _, row in FLIGHTS[:20]]
    wanted = {
        "late": sorted(each for each in delays if each > 3),
        "some": sorted(each for each in delays if 1 < each <= 3),
        "rest": [None, *sorted(each for each in delays if each <= 1)],
    }
    found = [[json.loads(value) for value in rows["value"].to_pylist()] for rows in done.rows.values()]
    assert [{row["branch"] for row in rows} for rows in found] == [{name} for name in wanted]
    assert [
        sorted((row["delay"] for row in rows), key=lambda each: -1 if each is None else each) for rows in found
    ] == list(wanted.values())


def test_a_function_sees_rows_go_by(harness: JobsHarness, tmp_path: Path) -> None:
    """All columns, also those that nothing uses, without those of Kohort's own; and the rows come out as they were."""
    topic = harness.topic()
    harness.send(topic, FLIGHTS[:20])
    seen = str(tmp_path / "seen")

    def note(rows: pa.Table) -> None:
        with Path(seen).open("a") as file:
            file.writelines(json.dumps(row, default=str) + "\n" for row in rows.to_pylist())

    app = StreamsApp("app")
    stream = app.stream(topic, schema="carrier string, delay int, at timestamp", key="carrier", event_time="at")
    graced = stream.peek(note).group_by("carrier", window("at", "1 hour", grace="1 hour"))
    graced.aggregate("n", worst=max_("delay"))
    (subtopology,) = app.compile(harness.spark).subtopologies
    done = harness.jobs(subtopology).run(harness.epoch_input(topic, times={0: 0, 1: 0}))
    assert {json.loads(value)["worst"] for value in done.rows[0]["value"].to_pylist()} <= set(range(7))
    assert done.rows[0].num_rows == 6
    rows = [json.loads(line) for line in Path(seen).read_text().splitlines()]
    assert sorted((row["carrier"], row["delay"]) for row in rows) == sorted(
        (row["carrier"], row["delay"]) for _, _, row in FLIGHTS[:20]
    )
    assert {tuple(row) for row in rows} == {("carrier", "delay", "at")}


def test_counts_are_those_of_a_branch_that_reads(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, [*FLIGHTS[:4], (0, b"x", b"not JSON")])
    nothing = Transform(lambda df: df.where("false"))
    end = ToTopic("out", None, "json", ("carrier",))
    subtopology = CompiledSubtopology(
        "0", TopicInput(harness.source(topic, DeadLetter("dead"))), (), (Branch((nothing,), end), Branch((), end))
    )
    done = harness.jobs(subtopology).run(harness.epoch_input(topic))
    assert (done.rows[0].num_rows, done.rows[1].num_rows) == (0, 4)
    assert (done.statistics.records, done.statistics.dropped, done.statistics.dead.num_rows) == (5, 1, 1)


@pytest.mark.parametrize("format", ["json", "avro"])
def test_columns_with_dots_come_through_a_join_with_a_global_table(harness: JobsHarness, format: str) -> None:  # noqa: A002
    harness.stores.clear()
    topic, names = harness.topic(), harness.topic()
    table = TableStore(
        "all-names", harness.source(names, ddl="carrier string, `its.name` string", event_time=None), None
    )
    harness.send(names, [(1, b"AA", {"carrier": "AA", "its.name": "American"}), (0, b"UA", {"carrier": "UA"})])
    ddl = "carrier string, `de.lay` int, `a.b` struct<`c.d`: int>, at timestamp"
    harness.send(
        topic,
        [
            (0, b"", {"carrier": "AA", "de.lay": 1, "a.b": {"c.d": 2}, "at": "1969-12-31T23:59:59.5Z"}),
            (1, b"", {"carrier": "UA", "de.lay": 2}),
            (1, b"", {"carrier": "XX", "de.lay": 3}),
            (0, b"", {"de.lay": 4}),
        ],
    )
    columns: tuple[str, ...] = ("carrier", "de.lay", "a.b", "its.name")
    if format == "avro":  # which has no names with dots
        columns = ("carrier", "its_name")
    end = ToTopic("out", ("carrier",), format, columns)
    # Without `_partition`: a global table is the same everywhere.
    select = Transform(lambda df: df.select("carrier", "`de.lay`", "`a.b`", "at"))
    rename = Transform(lambda df: df.withColumnRenamed("its.name", "its_name") if format == "avro" else df)
    steps = (select, Join(table, ("carrier",), "left", True), rename)
    jobs = harness.jobs(CompiledSubtopology("0", TopicInput(harness.source(topic, ddl=ddl)), (), (Branch(steps, end),)))
    for row in jobs.run_table(table, harness.epoch_input(names)).rows[0].to_pylist():
        harness.stores[("all-names", None)][row["key"]] = row["value"]
    done = jobs.run(harness.epoch_input(topic)).rows[0].sort_by("key").to_pylist()
    assert [row["key"] for row in done] == [b"AA", b"UA", b"XX", None]
    assert done[0]["timestamp"] == -500
    if format == "json":
        assert [json.loads(row["value"]) for row in done] == [
            {"carrier": "AA", "de.lay": 1, "a.b": {"c.d": 2}, "its.name": "American"},
            {"carrier": "UA", "de.lay": 2, "a.b": None, "its.name": None},
            {"carrier": "XX", "de.lay": 3, "a.b": None, "its.name": None},
            {"carrier": None, "de.lay": 4, "a.b": None, "its.name": None},
        ]


def test_text_goes_to_a_topic_beside_its_key(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, [(0, b"", {"carrier": "AA", "origin": "JFK"}), (0, b"", {"carrier": "UA"})])
    end = ToTopic("out", ("carrier",), "string", ("origin",))
    select = Transform(lambda df: df.select("carrier", "origin"))
    done = harness.jobs(through(harness, harness.source(topic), end, select)).run(harness.epoch_input(topic))
    assert [(row["key"], row["value"]) for row in done.rows[0].to_pylist()] == [(b"AA", b"JFK"), (b"UA", None)]


HEADERS = [{"key": "trace", "value": b"\x00\xff"}, {"key": "empty", "value": None}]


def with_headers(harness: JobsHarness, topic: str, records: list[tuple[Any, list[dict[str, Any]]]]) -> None:
    """Records of partition 0, with headers."""
    kind = RECORD_SCHEMA.field("headers").type
    names, rows = ("partition", "key", "value"), [(0, b"k", json.dumps(value).encode()) for value, _ in records]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    harness._send(topic, table.append_column("headers", pa.array([headers for _, headers in records], kind)))


def test_headers_come_in_and_go_out(harness: JobsHarness) -> None:
    topic = harness.topic()
    with_headers(harness, topic, [({"n": 1}, HEADERS), ({"n": 2}, [])])
    app = StreamsApp("app")
    stream = app.stream(topic, schema="n int", headers=True)
    stream.to("same", headers="_headers")
    traced = stream.select("n", "map('trace', hex(get(_headers, 0).value), 'n', string(n)) AS more")
    traced.to("made", format="avro", headers="more")
    stream.select("transform(_headers, each -> each.key) AS names").to("names")
    (subtopology,) = app.compile(harness.spark).subtopologies
    done = harness.jobs(subtopology).run(harness.epoch_input(topic))
    assert [json.loads(value) for value in done.rows[0]["value"].to_pylist()] == [{"n": 1}, {"n": 2}]
    assert done.rows[0]["headers"].to_pylist() == [HEADERS, []]
    assert done.rows[1]["headers"].to_pylist() == [
        [{"key": "trace", "value": b"00FF"}, {"key": "n", "value": b"1"}],
        [{"key": "trace", "value": None}, {"key": "n", "value": b"2"}],
    ]
    assert [json.loads(value)["names"] for value in done.rows[2]["value"].to_pylist()] == [["trace", "empty"], []]
    assert "headers" not in done.rows[2].column_names


def test_records_delete_where_a_condition_is_true(harness: JobsHarness) -> None:
    """Then they needn't be such as the format can have."""
    topic = harness.topic()
    harness.send(topic, [(0, b"", {"k": "a", "n": 1}), (0, b"", {"k": "b"}), (0, b"", {"k": "c", "n": 3})])
    app = StreamsApp("app")
    stream = app.stream(topic, schema="k string, n int")
    whole = '{"type": "record", "name": "r", "fields": [{"name": "k", "type": "string"}, {"name": "n", "type": "int"}]}'
    stream.to("json", key="k", tombstone="n > 2")
    stream.to("avro", key="k", tombstone=F.col("n").isNull(), format="avro", schema=whole)
    (subtopology,) = app.compile(harness.spark).subtopologies
    done = harness.jobs(subtopology).run(harness.epoch_input(topic))
    records = [
        dict(zip(*(rows[name].to_pylist() for name in ("key", "value")), strict=True)) for rows in done.rows.values()
    ]
    assert records == [
        {b"a": b'{"k":"a","n":1}', b"b": b'{"k":"b","n":null}', b"c": None},
        {b"a": b"\x02a\x02", b"b": None, b"c": b"\x02c\x06"},
    ]


def test_a_column_names_the_topics_of_rows(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, [(0, b"", {"n": 1, "to": "a"}), (0, b"", {"n": 2}), (0, b"", {"n": 3, "to": "b"})])
    app = StreamsApp("app")
    app.stream(topic, schema="n int, to string").to(column="to")
    program = app.compile(harness.spark)
    (subtopology,) = program.subtopologies
    assert program.sinks == ()
    done = harness.jobs(subtopology).run(harness.epoch_input(topic))
    found = zip(done.rows[0]["topic"].to_pylist(), done.rows[0]["value"].to_pylist(), strict=True)
    assert list(found) == [("a", b'{"n":1}'), (None, b'{"n":2}'), ("b", b'{"n":3}')]
    (named,) = epoch_writes(subtopology_plan_of(subtopology), done, None, {}, lambda *_: pa.table({})).named
    assert named.rows["topic"].to_pylist() == ["a", None, "b"]
    assert named.unknown.stop


def test_a_table_leaves_out_records_without_a_key(harness: JobsHarness) -> None:
    topic, names = harness.topic(), harness.topic()
    table = TableStore("n", harness.source(names, ddl="carrier string, name string", event_time=None), "n-changelog")
    harness.send(names, [(0, b"AA", {"carrier": "AA"}), (0, b"??", {"name": "nobody"}), (0, None, None)])
    harness.send(names, [(0, None, {"carrier": "UA"})])
    subtopology = CompiledSubtopology("0", TopicInput(harness.source(topic)), (table,), ())
    loaded = harness.jobs(subtopology).run_table(table, harness.epoch_input(names))
    assert loaded.rows[0]["key"].to_pylist() == [b"AA"]
    assert (loaded.statistics.records, loaded.statistics.reasons) == (4, {"no key": 3})


@pytest.mark.parametrize("arrow", [False, True])
def test_an_aggregate_by_the_topics_key_leaves_out_rows_without(harness: JobsHarness, arrow: bool) -> None:
    """As Kafka Streams does: such records are dealt to any partitions, and there would be a group of them in each."""
    harness.stores.clear()
    topic = harness.topic()
    harness.send(topic, [(at, None, {"carrier": "UA", "delay": 1, "at": "2013-01-01T05:00:00Z"}) for at in (0, 0, 1)])
    harness.send(topic, [(0, "AA", {"carrier": "AA", "delay": 2, "at": "2013-01-01T05:00:00Z"})])
    spec = harness.spec("by-carrier", "carrier")
    if arrow:
        columns = (("n", harness.schema("n int")["n"].dataType),)
        kept = ArrowAggregation(
            lambda rows, _: rows.group_by("carrier").aggregate([([], "count_all")]).rename_columns(["carrier", "n"]),
            harness.schema("n int"), harness.schema("carrier string"),
        )  # fmt: skip
        spec = dataclasses.replace(spec, window=None, arrow=kept, state_columns=columns, output_columns=columns)
    done = harness.jobs(through(harness, harness.source(topic), Aggregate(spec, ()))).run(harness.epoch_input(topic))
    assert [shown["carrier"] for shown in harness.keep(spec.name, done.rows[0]).values()] == ["AA"]
    assert (done.statistics.records, done.statistics.reasons) == (4, {"no key": 3})


def test_rows_without_a_key_are_repartitioned_together(harness: JobsHarness) -> None:
    topic, between = harness.topic(), harness.topic()
    harness.send(topic, [(0, b"", {"delay": 1}), (1, b"", {"delay": 2, "origin": "JFK"})])
    schema = harness.schema("origin string, delay int, nothing void, at timestamp")
    end = ToRows(between, ("origin",), schema, "at")
    add = Transform(lambda df: df.selectExpr("origin", "delay", "null as nothing", "at"))
    rows = harness.jobs(through(harness, harness.source(topic), end, add)).run(harness.epoch_input(topic)).rows[0]
    assert sorted(rows["key"].to_pylist()) == [b"", b"JFK"]
    harness.forward(between, rows)
    again = CompiledSubtopology(
        "1", RowsInput(between, schema, ("origin",), "at"), (),
        (Branch((), ToTopic("out", None, "json", tuple(schema.names))),),
    )  # fmt: skip
    done = harness.jobs(again).run(harness.epoch_input(between))
    assert done.statistics.max_times == {}
    assert sorted(map(repr, map(json.loads, done.rows[0]["value"].to_pylist()))) == [
        "{'origin': 'JFK', 'delay': 2, 'nothing': None, 'at': None}",
        "{'origin': None, 'delay': 1, 'nothing': None, 'at': None}",
    ]


@pytest.mark.parametrize("moved", [False, True])
def test_an_arrow_function_has_rows_of_large_epochs_in_order(
    harness: JobsHarness, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for transforms that shuffle them; of those too it has all of a partition at once."""
    monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    harness.stores.clear()
    topic = harness.topic()
    hours: list[dict[str, Any]] = [
        {"carrier": "AU"[number % 2], "a.b": number, "at": "0099-01-01T05:30:00Z"} for number in range(40)
    ]
    odd: list[dict[str, Any]] = [
        {"carrier": "A", "a.b": -1},
        {"carrier": "A", "a.b": -1, "at": "9999-12-31T23:59:59Z"},
        {"carrier": "A", "a.b": -1, "at": "+12000-01-01T00:00:00Z"},
    ]
    schema = harness.schema("window timestamp, carrier string, `a.b` int, at timestamp")
    state = harness.schema("`the.list` array<int>")

    def listed(rows: pa.Table, prior: pa.Table) -> pa.Table:
        found = {(row["window"], row["carrier"]): row["the.list"] for row in prior.to_pylist()}
        for row in rows.to_pylist():
            found[row["window"], row["carrier"]] = [*found.get((row["window"], row["carrier"]), []), row["a.b"]]
        return pa.Table.from_pylist(
            [{"window": at, "carrier": carrier, "the.list": some} for (at, carrier), some in found.items()]
        )

    columns = tuple((field.name, field.dataType) for field in state.fields)
    spec = AggregateSpec(
        "lists", (("carrier", schema["carrier"].dataType),), window("at", "1 hour", slide="30 minutes"), (), "update",
        "lists-changelog", "at", ArrowAggregation(listed, state, schema), columns, columns, Route.TEXT, ("carrier",),
    )  # fmt: skip
    ddl = "carrier string, `a.b` int, at timestamp"
    far = "case when `a.b` < 0 and at is not null then at + interval 2000 years else at end as at"
    steps = [Transform(lambda df: df.selectExpr("carrier", "`a.b`", far, "_partition"))]
    if moved:
        steps.append(Transform(lambda df: df.repartition(3)))
    jobs = harness.jobs(through(harness, harness.source(topic, Drop(), ddl=ddl), Aggregate(spec, ()), *steps))
    shown: dict[str, Any] = {}
    for epoch, some in enumerate((hours[:10], hours[10:] + odd, [])):
        start = list(harness.ends[topic])
        harness.send(topic, [("AU".index(row["carrier"]), b"", row) for row in some])
        ranges = [OffsetRange(topic, at, start[at], end) for at, end in enumerate(harness.ends[topic])]
        done = jobs.run(EpochInput(epoch, tuple(ranges)))
        assert done.statistics.records == len(some)
        shown = harness.keep("lists", done.rows[0])
    assert len(shown) == 4
    for value in shown.values():
        wanted = [row["a.b"] for row in hours if row["carrier"] == value["carrier"]]
        assert value["window"] in ("0099-01-01T05:00:00.000Z", "0099-01-01T05:30:00.000Z")
        assert (sorted(value["the.list"]) if moved else value["the.list"]) == wanted


def test_large_epochs_have_as_many_splits_as_there_are_cores_now(
    harness: JobsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = harness.topic()
    harness.send(topic, FLIGHTS)
    shuffled: list[int] = []

    def watched(rows: DataFrame) -> DataFrame:
        shuffled.append(int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0))
        return rows

    end = ToTopic("out", ("carrier",), "json", ("delay",))
    jobs = harness.jobs(through(harness, harness.source(topic), end, Transform(watched)))
    for parallelism, small in ((2, 0), (3, 0), (3, 1000), (0, 0), (2, 0)):
        monkeypatch.setattr(harness, "parallelism", parallelism)
        monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", small)
        assert jobs.run(harness.epoch_input(topic)).rows[0].num_rows == len(FLIGHTS)
    assert [key.splits for key in jobs._reusable] == [2, 3, 1]
    assert list(dict.fromkeys(shuffled)) == [2, 3]
    assert harness.spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_plan_that_shuffles_is_built_once_and_runs_anew(
    harness: JobsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the number of its splits changes in between."""
    monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    topic = harness.topic()
    built: list[int] = []

    def shuffled(rows: DataFrame) -> DataFrame:
        built.append(harness.parallelism)
        return rows.repartition("carrier")

    end = ToTopic("out", ("carrier",), "json", ("delay",))
    jobs = harness.jobs(through(harness, harness.source(topic), end, Transform(shuffled)))
    before = shuffle_files(harness.spark)
    epochs = [(FLIGHTS[:7], 2), (FLIGHTS[7:9], 2), (FLIGHTS[9:15], 3), (FLIGHTS[15:], 2)]
    for epoch, (some, parallelism) in enumerate(epochs):
        monkeypatch.setattr(harness, "parallelism", parallelism)
        start = list(harness.ends[topic])
        harness.send(topic, some)
        ranges = [OffsetRange(topic, at, start[at], now) for at, now in enumerate(harness.ends[topic])]
        rows = jobs.run(EpochInput(epoch, tuple(ranges))).rows[0]
        delays = [json.loads(value)["delay"] for value in rows["value"].to_pylist()]
        assert sorted(delays) == sorted(row["delay"] for _, _, row in some)
    assert built == [2, 2, 3]  # the first to see which columns it uses
    eventually(lambda: not shuffle_files(harness.spark) - before)


def shuffle_files(spark: SparkSession) -> set[Path]:
    """What shuffles have on the disk, but for those whose plans are garbage by now."""
    gc.collect()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    return set(Path(spark.sparkContext.getConf().get("spark.local.dir", "")).rglob("shuffle_*"))


def test_a_job_is_cancelled_from_another_thread(harness: JobsHarness) -> None:
    topic = harness.topic()
    harness.send(topic, FLIGHTS[:2])

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(60)
            yield batch

    sleep = Transform(lambda df: df.mapInArrow(slow, df.schema))
    end = ToTopic("out", None, "json", ("carrier",))
    jobs = harness.jobs(through(harness, harness.source(topic), end, sleep))

    def cancel() -> None:
        tracker = harness.spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds():
            time.sleep(0.02)
        time.sleep(0.5)
        jobs.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    started = time.monotonic()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        jobs.run(harness.epoch_input(topic))
    canceller.join()
    assert time.monotonic() - started < 30
    # The session goes on: with another subtopology's job, and with this one's next.
    assert (
        harness.jobs(through(harness, harness.source(topic), end)).run(harness.epoch_input(topic)).statistics.records
        == 2
    )


def test_only_used_columns_are_read(harness: JobsHarness) -> None:
    spec = harness.spec("used", "origin")
    jobs = harness.jobs(
        through(harness, harness.source("t"), ToPartials("p", spec), Transform(lambda df: df.where("carrier = 'AA'")))
    )
    assert jobs._plans._used == {"carrier", "origin", "delay", "at"}
    # In whatever case they are written; and the plan still fits transforms that go by places.
    places = Transform(lambda df: df.toDF("carrier", "origin", "delay", "at", "unused", "_partition"))
    cases = Transform(lambda df: df.where("CARRIER = 'AA'").selectExpr("ORIGIN", "Delay", "at"))
    jobs = harness.jobs(through(harness, harness.source("t"), ToPartials("p", spec), places, cases))
    assert jobs._plans._used == {"carrier", "origin", "delay", "at"}
    assert jobs._plans.branch(0, StageContext(RpcAddress(("h", 1), b""), "0", 0, 1)).columns == ROWS_SCHEMA.names


@pytest.mark.parametrize("keep", ["cache", "localCheckpoint"])
def test_transforms_that_keep_rows_are_refused(harness: JobsHarness, keep: str) -> None:
    def kept(rows: DataFrame) -> DataFrame:
        found: DataFrame = getattr(rows, keep)()
        return found

    end = ToTopic("out", None, "json", ("carrier",))
    topic = harness.topic()
    jobs = harness.jobs(through(harness, harness.source(topic), end, Transform(kept)))
    with pytest.raises(ProgramError, match="keeps rows"):
        jobs.run(harness.epoch_input(topic))
    harness.spark.catalog.clearCache()
    # Of a table that doesn't change it is no harm.
    names = harness.spark.createDataFrame([("AA", "American")], "carrier string, name string").cache()
    named = Transform(lambda df: df.join(F.broadcast(names), "carrier"))
    jobs = harness.jobs(through(harness, harness.source(topic), ToTopic("out", None, "json", ("name",)), named))
    harness.send(topic, FLIGHTS[:4])
    assert jobs.run(harness.epoch_input(topic)).rows[0]["value"].to_pylist() == [b'{"name":"American"}'] * 2


def test_plans_that_remember_arent_run_again(harness: JobsHarness) -> None:
    rows = harness.spark.range(10)
    assert is_reusable(rows.where("id > 3"))
    assert not is_reusable(rows.selectExpr("id % 3 as k").groupBy("k").count())
    assert not is_reusable(rows.selectExpr("current_timestamp()"))
    assert not is_reusable(rows.selectExpr("rand()"))


def test_state_of_any_type_goes_through_a_store(harness: JobsHarness) -> None:
    ddl = (
        "k string, a tinyint, b float, c double, d decimal(38,18), e timestamp, f timestamp_ntz, g date, h binary, "
        "i array<double>, j struct<x: timestamp, y: decimal(5,2)>, l boolean, m string"
    )
    row = (
        "'k', tinyint(1), float(0.1), double('NaN'), cast(12.000000000000000001 as decimal(38,18)), "
        "timestamp'1969-12-31 23:59:59.000001', timestamp_ntz'2013-01-01 00:00:00.5', date'0099-01-02', x'00ff', "
        "array(0.1D, double('NaN'), null), "
        "named_struct('x', timestamp'1013-01-01 00:00:00.123456', 'y', cast(1.5 as decimal(5,2))), true, 'ä\"\\n'"
    )
    schema = harness.schema(ddl)
    names = schema.names[1:]
    # Of these Spark knows that nothing in them is null, which it doesn't of what comes out of a store.
    given: dict[str, Any] = {
        "no_nulls": last(F.array(F.lit(1))),
        "listed": collect("j", 2),
        "sum": sum_("d"),
        "mean": avg("d"),
    }
    given |= {f"last_{name}": last(name) for name in names}
    app = StreamsApp("app", bootstrap_servers="127.0.0.1:1")
    app.stream("t", schema=ddl, key="k", event_time="e").group_by("k").aggregate("all", **given)
    spec = app.compile(harness.spark).subtopologies[0].aggregates[0]
    rows = harness.spark.sql(f"select {row}").toDF(*schema.names)
    rows = rows.select(*[column(each.name).cast(each.dataType).alias(each.name) for each in schema], F.lit(0))
    combined = partials(rows.toDF(*schema.names, "_partition"), spec, "_partition")
    encoded = combined.select(
        *["_partition", "_key", "_time", "_records"],
        *[
            encoded_column(column(name), kind).alias(state_column(number))
            for number, (name, kind) in enumerate(spec.state_columns)
        ],
    )
    found = json.loads(merged(encoded, spec).toArrow()["value"][0].as_py())
    assert found.pop("state")
    kinds = zip(spec.finish_columns(), spec.output_columns, strict=True)
    results = [shown(result, kind).alias(name) for result, (name, kind) in kinds]
    finished = combined.select(F.to_json(F.struct(*results), JSON_OPTIONS).alias("value"))
    assert found == json.loads(finished.toArrow()["value"][0].as_py())


def test_times_are_shown_in_one_form(harness: JobsHarness) -> None:
    """With ms as the starts of windows, or µs where there are any: in a struct, an array and a map, too."""
    schema = harness.schema(
        "at timestamp, l array<timestamp>, m map<string, timestamp>, s struct<`a.b`: timestamp_ntz>"
    )
    times = "timestamp'2013-01-01 05:00:00.25', timestamp'0099-01-01 00:00:00.000001'"
    local = "timestamp_ntz'2013-01-01 05:00:00'"
    given = harness.spark.sql(
        f"select array({times}) l, map('k', {times.split(', ')[0]}) m, struct({local} as `a.b`) s"
    )
    rows = given.selectExpr("l[0] as at", "l", "m", "s").union(harness.spark.sql("select null, null, null, null"))
    columns = [shown(column(field.name), field.dataType).alias(field.name) for field in schema]
    texts = rows.select(F.to_json(F.struct(*columns), JSON_OPTIONS).alias("value")).toArrow()["value"].to_pylist()
    early = "2013-01-01T05:00:00.250"
    assert [json.loads(text) for text in texts] == [
        {"at": f"{early}Z", "l": [f"{early}Z", "0099-01-01T00:00:00.000001Z"], "m": {"k": f"{early}Z"},
         "s": {"a.b": "2013-01-01T05:00:00.000"}},
        {"at": None, "l": None, "m": None, "s": None},
    ]  # fmt: skip


def test_types_are_encoded_and_decoded(harness: JobsHarness) -> None:
    ddl = (
        "a tinyint, b float, c double, d decimal(20,5), e timestamp, f timestamp_ntz, g date, h binary, "
        "i array<double>, j struct<x: timestamp, y: binary>, k map<string, int>, l boolean, m string, n bigint"
    )
    row = (
        "cast(-3 as tinyint), float(0.1), double('NaN'), cast(12.34567 as decimal(20,5)), "
        "timestamp'1969-12-31 23:59:59.000001', timestamp_ntz'2013-01-01 00:00:00.5', date'0099-01-02', "
        "unhex(repeat('00ff', 60)), "
        "array(0.1D, null), "
        "named_struct('x', timestamp'2013-01-01 00:00:00.123456', 'y', x'00'), "
        "map('q', 1), true, "
        "'ä\"\\n', 9223372036854775807"
    )
    schema = harness.schema(ddl)
    columns = tuple((field.name, field.dataType) for field in schema.fields)
    names = schema.names
    plain = (
        harness.spark.sql(f"select {row}")
        .toDF(*names)
        .union(harness.spark.createDataFrame([(None,) * len(names)], ddl))
    )
    plain = plain.select(*[column(name).cast(kind).alias(name) for name, kind in columns])
    encoded = plain.select(*[encoded_column(column(name), kind).alias(name) for name, kind in columns])
    assert [field.dataType for field in encoded.schema.fields] == [
        field.dataType for field in encoded_schema(columns).fields
    ]
    back = encoded.select(*[decoded_column(column(name), kind).alias(name) for name, kind in columns])
    assert repr(back.toArrow().to_pylist()) == repr(plain.toArrow().to_pylist())
