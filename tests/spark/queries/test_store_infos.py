from __future__ import annotations

from typing import Any

from pyspark.sql.types import IntegerType, LongType, StringType, StructType

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
from kohort.spark.program.operations import UserFunction
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.table_operations import PENDING, SINCE, VERSIONS, AsOfJoin
from kohort.spark.program.windows import WindowSpec
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.store_infos import store_infos
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


def test_of_a_join_as_of_a_time_the_versions_can_be_asked_for() -> None:
    since = StructType().add(SINCE, LongType())
    states = (
        StateSpec(VERSIONS, "rated-versions", "c", StateKind.MAP, since, since),
        StateSpec(PENDING, "rated-pending", "c", StateKind.VALUE, since),
    )
    join = AsOfJoin(("carrier",), ("carrier",), (), "inner", 1000, 0)
    step = Process("rated", (("carrier", StringType()),), since, since, join, states, ("carrier",))
    reads = RowsInput("app-rated-repartition", since, ("carrier",))
    compiled = CompiledSubtopology("0", reads, (), (Branch((step,), Discard()),))
    (info,) = store_infos(Program("app", (compiled,), (), Topology({}), "")).values()
    assert (info.name, info.columns, info.group) == ("rated-versions", (("carrier", "string"), (SINCE, "bigint")), 1)
