from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.processors.states import at_time, joined_keys
from kohort.spark.program.compiled import (
    Aggregate,
    AggregateSpec,
    Branch,
    CompiledSubtopology,
    Discard,
    Input,
    PartialsInput,
    Program,
    Route,
    RowsInput,
    SourceSpec,
    TableStore,
    TopicInput,
)
from kohort.spark.program.error_policies import Fail
from kohort.spark.program.operations import Dedupe, Top, UserFunction
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.table_operations import PENDING, SINCE, VERSIONS, AsOfJoin
from kohort.spark.program.windows import WindowSpec
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.result_pages import value_json
from kohort.spark.queries.store_infos import store_infos
from kohort.spark.queries.url_keys import parse_group, parse_key
from kohort.streams.topology import Subtopology, Topology


def source(topic: str, *key: str) -> SourceSpec:
    schema = StructType().add("carrier", StringType()).add("number", IntegerType()).add("name", StringType())
    return SourceSpec(topic, schema, "json", key, None, "earliest", Fail(), partitioner="crc32")


def aggregate(name: str, window: WindowSpec | None, route: Route, *routed_by: str) -> AggregateSpec:
    fields: dict[str, Any] = {
        "aggregations": (), "emit": "update", "changelog": f"app-{name}-changelog", "event_time": None, "arrow": None,
        "state_columns": (), "output_columns": (),
    }  # fmt: skip
    group = (("carrier", StringType()), ("number", IntegerType()))
    return AggregateSpec(name=name, group=group, window=window, route=route, routed_by=routed_by, **fields)


def subtopology(name: str, reads: Input, spec: AggregateSpec, *tables: TableStore) -> CompiledSubtopology:
    return CompiledSubtopology(name, reads, tables, (Branch((), Aggregate(spec, ())),))


def test_the_stores_of_a_program() -> None:
    hour = WindowSpec("time_hour", 3_600_000, 3_600_000, None, None)
    direct = aggregate("direct", None, Route.TEXT, "carrier")
    hourly = aggregate("hourly", hour, Route.JSON, "carrier", "number")
    airlines = TableStore("airlines", source("a", "carrier"), "c")
    program = Program(
        "app",
        (
            subtopology("0", TopicInput(source("flights", "carrier")), direct, airlines),
            subtopology("1", PartialsInput("app-hourly-repartition", hourly), hourly),
        ),
        (TableStore("planes", source("planes", "carrier", "number"), None),),
        Topology({"0": Subtopology(source_topics=["flights"])}),
        "",
    )
    columns = (("carrier", "string"), ("number", "int"))
    assert store_infos(program) == {
        "airlines": StoreInfo(
            "airlines", columns[:1], False, False, "0", Route.TEXT, ("carrier",), False, True, "crc32"
        ),
        "direct": StoreInfo("direct", columns, False, True, "0", Route.TEXT, ("carrier",), False, partitioner="crc32"),
        "hourly": StoreInfo("hourly", columns, True, True, "1", Route.JSON, ("carrier", "number"), True),
        "planes": StoreInfo(
            "planes", columns, False, True, None, Route.TEXT, ("carrier", "number"), False, True, "crc32"
        ),
    }


def test_the_states_of_a_function() -> None:
    name, number = StructType().add("name", StringType()), StructType().add("n", IntegerType())
    states = (
        StateSpec("last", "f-last", "c", StateKind.VALUE, name),
        StateSpec("log", "f-log", "c", StateKind.LIST, name),
        StateSpec("by", "f-by", "c", StateKind.MAP, StructType([*number.fields, *name.fields]), number),
        StateSpec("timers", "f-timers", "c", StateKind.VALUE, name, own=True),
    )
    group = (("carrier", StringType()),)
    step = Process("f", group, name, name, UserFunction(print), states, ("carrier",))
    reads = RowsInput("app-f-repartition", name, ("carrier",))
    compiled = CompiledSubtopology("0", reads, (), (Branch((step,), Discard()),))
    program = Program("app", (compiled,), (), Topology({"0": Subtopology(source_topics=["flights"])}), "")
    common: dict[str, Any] = {
        "windowed": False,
        "json_keys": True,
        "subtopology": "0",
        "route": Route.TEXT,
        "routed_by": ("carrier",),
    }
    columns = {"f-last": (), "f-log": (("at", "bigint"), ("piece", "bigint")), "f-by": (("n", "int"),)}
    assert store_infos(program) == {
        store: StoreInfo(
            store, (("carrier", "string"), *more), **common, partition_certain=True, group=1 if more else 0
        )
        for store, more in columns.items()
    }


def test_what_dedupe_and_top_keep() -> None:
    name, rank = StructType().add("name", StringType()), StructType().add("rank", IntegerType())
    group = (("carrier", StringType()),)
    at = (
        ("seen", Dedupe(None), StateSpec("kept", "seen", "c", StateKind.VALUE, StructType([]))),
        ("recent", Dedupe(9), StateSpec("kept", "recent", "c", StateKind.VALUE, StructType([]), None, 10, 28)),
        ("best", Top(3, "n", True, None), StateSpec("kept", "best", "c", StateKind.MAP, rank, rank)),
        ("hourly", Top(3, "n", True, WindowSpec("at", 9, 9, None, None)),
         StateSpec("kept", "hourly", "c", StateKind.MAP, rank, rank)),
    )  # fmt: skip
    steps = tuple(Process(each, group, name, name, does, (state,), ("carrier",)) for each, does, state in at)
    compiled = CompiledSubtopology("0", RowsInput("r", name, ("carrier",)), (), (Branch(steps, Discard()),))
    program = Program("app", (compiled,), (), Topology({"0": Subtopology(source_topics=["flights"])}), "")
    found = {
        info.name: (info.windowed, [column for column, _ in info.columns]) for info in store_infos(program).values()
    }
    assert found == {
        "seen": (False, ["carrier"]),
        "recent": (True, ["carrier"]),
        "best": (False, ["carrier", "rank"]),
        "hourly": (True, ["carrier", "rank"]),
    }


def test_what_a_join_keeps_is_called_as_the_user_does() -> None:
    stored = StructType().add("_left0", StringType())
    states = (
        StateSpec("clock", "j-clock", "c", StateKind.VALUE, stored, own=True),
        StateSpec("left", "j-left", "c", StateKind.LIST, stored, None, 10, shown=(("_left0", "name"),)),
    )
    step = Process("j", (("carrier", StringType()),), stored, stored, UserFunction(print), states, ("carrier",))
    compiled = CompiledSubtopology("0", RowsInput("r", stored, ("carrier",)), (), (Branch((step,), Discard()),))
    program = Program("app", (compiled,), (), Topology({"0": Subtopology(source_topics=["flights"])}), "")
    (info,) = store_infos(program).values()
    assert (info.name, info.windowed, info.shown) == ("j-left", True, (("_left0", "name"),))


def test_fields_of_values_are_renamed() -> None:
    names = (("_left0", "name"), ("_left1", "n"))
    cases = {
        b'{"_left0":"a","_left1":1.50,"_timestamp":7}': b'{"name":"a","n":1.50,"_timestamp":7}',
        b'{"rows":[{"_left0":"_left1"},{"_left1":null}]}': b'{"rows":[{"name":"_left1"},{"n":null}]}',
        b'{"rows":[]}': b'{"rows":[]}',
        b"[1]": b"[1]",
    }
    assert {value: bytes(value_json(value, False, names)) for value in cases} == cases
    assert value_json(b"no JSON", False, names) == "no JSON"


def test_keys_that_are_asked_for_are_those_that_processors_write() -> None:
    groups = group_keys(["carrier"], [pa.array(["UA"])])
    ranks = group_keys(["rank"], [pa.array([1], pa.int32())])
    timed = at_time(groups, pa.array([1_000]))
    group, rank = ("carrier", "string"), ("rank", "int")
    seen = StoreInfo("seen", (group,), True, True, "0", Route.TEXT, ("carrier",))
    best = StoreInfo("best", (group, rank), False, True, "0", Route.TEXT, ("carrier",), group=1)
    hourly = replace(best, windowed=True)
    second = "1970-01-01T00:00:01Z"
    assert parse_key(seen, f"UA@{second}").stored == timed[0].as_py().encode()
    assert parse_key(best, "UA,1").stored == joined_keys(groups, ranks)[0].as_py().encode()
    assert parse_key(hourly, f"UA,1@{second}").stored == joined_keys(timed, ranks)[0].as_py().encode()
    for info, text, before in ((best, "UA", groups), (hourly, f"UA@{second}", timed)):
        start, end, route = parse_group(info, text)
        assert end is not None and start <= joined_keys(before, ranks)[0].as_py().encode() < end
        assert route == b"UA"


def test_of_a_join_as_of_a_time_the_versions_can_be_asked_for() -> None:
    since = StructType().add(SINCE, LongType())
    states = (
        StateSpec(VERSIONS, "rated-versions", "c", StateKind.MAP, since, since),
        StateSpec(PENDING, "rated-pending", "c", StateKind.VALUE, since, own=True),
    )
    join = AsOfJoin(("carrier",), ("carrier",), (), "inner", 1000, 0)
    step = Process("rated", (("carrier", StringType()),), since, since, join, states, ("carrier",))
    reads = RowsInput("app-rated-repartition", since, ("carrier",))
    compiled = CompiledSubtopology("0", reads, (), (Branch((step,), Discard()),))
    (info,) = store_infos(Program("app", (compiled,), (), Topology({}), "")).values()
    assert (info.name, info.columns, info.group) == ("rated-versions", (("carrier", "string"), (SINCE, "bigint")), 1)
