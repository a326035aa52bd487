"""Programs compiled by Spark: what they come to, how their aggregates merge, and what wrong ones are told."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kohort.spark import (
    DeadLetter,
    ProgramError,
    StreamsApp,
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
    window,
)
from kohort.spark.formats import decoder, encoder
from kohort.spark.jobs.group_records import group_records
from kohort.spark.jobs.outputs import WindowEnd
from kohort.spark.program.compiled import (
    Aggregate,
    AggregateSpec,
    Join,
    PartialsInput,
    Peek,
    Route,
    RowsInput,
    ToPartials,
    TopicInput,
    ToRows,
    ToTopic,
    Transform,
)
from kohort.spark.runtime.planning import subtopology_plan_of
from kohort.spark.runtime.subtopology_plan import StoreOutput

FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, distance INT, at TIMESTAMP"
AIRLINE = "carrier STRING, name STRING"


def an_app(**settings: Any) -> StreamsApp:
    return StreamsApp("app", **settings)


def spec_of(app: StreamsApp, spark: SparkSession, name: str) -> AggregateSpec:
    return next(
        spec for subtopology in app.compile(spark).subtopologies for spec in subtopology.aggregates if spec.name == name
    )


# Aggregates ----------------------------------------------------------------------------------------------------------

ROWS = "k STRING, i INT, b BIGINT, d DOUBLE, m DECIMAL(12,2), s STRING, at TIMESTAMP"
START = datetime(2013, 1, 1, tzinfo=UTC)


def rows(spark: SparkSession) -> DataFrame:
    """600 rows of three keys, with nulls everywhere; of one key everything is null."""
    chance = random.Random(7)

    def some(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    made = []
    for number in range(600):
        key = chance.choice(["a", "b", None, "nulls"])
        at = START + timedelta(seconds=chance.randrange(300))
        values = [
            some(chance.randrange(-9, 9)),
            some(chance.randrange(10**12)),
            some(1e9 + chance.random()),
            some(chance.randrange(10**9) / 100),
            some(chance.choice("xyz") + str(number % 40)),
        ]
        if key == "nulls":
            values = [None] * 5
        values[3] = None if values[3] is None else Decimal(str(values[3]))
        made.append((key, *values, some(at)))
    return frame(spark, made)


def frame(spark: SparkSession, made: list[tuple[Any, ...]]) -> DataFrame:
    """Rows of ROWS. By way of Arrow, which takes no Python worker: those need seconds to start."""
    schema = to_arrow_schema(StructType.fromDDL(ROWS), timezone="UTC")
    return spark.createDataFrame(pa.table([list(column) for column in zip(*made, strict=True)], schema=schema))


def longest() -> Any:
    return aggregation(
        update=lambda: F.max(F.struct("d", "s")), merge=F.max, finish=lambda best: F.concat(best["s"], F.lit("!"))
    )


def all_of_most(limit: int) -> Column:
    """The different `s` of rows with the greatest `i`."""
    entries = F.sort_array(F.collect_list(F.when(F.expr("i is not null and s is not null"), F.struct("i", "s"))), False)
    found = F.sort_array(F.array_distinct(F.filter(entries, lambda entry: entry["i"] == entries[0]["i"])["s"]))
    return F.when(F.size(found).between(1, limit), found)


AGGREGATES: dict[str, tuple[Any, Callable[[], Any], float]] = {
    # name: ours, Spark's own, how far they may be apart (relative)
    "n": (count(), lambda: F.count(F.lit(1)), 0),
    "n_i": (count("i"), lambda: F.count("i"), 0),
    "sum_i": (sum_("i"), lambda: F.sum("i"), 0),
    "sum_d": (sum_("d"), lambda: F.sum("d"), 1e-12),
    "sum_m": (sum_("m"), lambda: F.sum("m"), 0),
    "min_i": (min_("i"), lambda: F.min("i"), 0),
    "max_s": (max_("s"), lambda: F.max("s"), 0),
    "max_at": (max_("at"), lambda: F.max("at"), 0),
    "avg_i": (avg("i"), lambda: F.avg("i"), 1e-12),
    "avg_m": (avg("m"), lambda: F.avg("m"), 0),
    # Values near 1e9 whose variance is about 1/12: a sum of squares has no correct digit here.
    "var_d": (variance("d"), lambda: F.var_samp("d"), 1e-6),
    "var_pop": (variance("d", population=True), lambda: F.var_pop("d"), 1e-6),
    "sd_d": (stddev("d"), lambda: F.stddev_samp("d"), 1e-6),
    "sd_i": (stddev("i", population=True), lambda: F.stddev_pop("i"), 1e-9),
    "distinct": (approx_distinct("s"), lambda: F.count_distinct("s"), 0.05),
    "distinct_d": (approx_distinct("m"), lambda: F.count_distinct("m"), 0.05),
    "p_i": (approx_percentile("i", 0.5, k=4000), lambda: F.percentile_approx("i", 0.5, 100_000), 0),
    "p_d": (
        approx_percentile("d", [0.0, 0.9], k=4000),
        lambda: F.percentile_approx("d", [0.0, 0.9], 100_000),
        1e-12,
    ),
    "own": (longest(), lambda: F.concat(F.max(F.struct("d", "s"))["s"], F.lit("!")), 0),
    "first_i": (
        first("i"),
        lambda: F.min(F.when(F.col("at").isNotNull(), F.struct("at", "_offset", "i")))["i"],
        0,
    ),
    "last_s": (
        last("s", ignore_nulls=True),
        lambda: F.max(F.when(F.col("at").isNotNull() & F.col("s").isNotNull(), F.struct("at", "_offset", "s")))["s"],
        0,
    ),
    "last_by": (last("s", by="b"), lambda: F.max_by("s", "b"), 0),
    "n_if": (count_if("i > 0"), lambda: F.count_if(F.col("i") > 0), 0),
    "n_s_if": (count("s", where="d > 1e9"), lambda: F.count(F.when(F.col("d") > 1e9, F.col("s"))), 0),
    "sum_if": (sum_("i", where="b % 2 = 0"), lambda: F.sum(F.when(F.col("b") % 2 == 0, F.col("i"))), 0),
    "avg_if": (avg("m", where="i > 0"), lambda: F.avg(F.when(F.col("i") > 0, F.col("m"))), 0),
    "sd_if": (stddev("d", where="i > 0"), lambda: F.stddev(F.when(F.col("i") > 0, F.col("d"))), 1e-6),
    "max_if": (max_("s", where="i = 1"), lambda: F.max(F.when(F.col("i") == 1, F.col("s"))), 0),
    "last_if": (last("s", by="b", where="i = 2"), lambda: F.max_by("s", F.when(F.col("i") == 2, F.col("b"))), 0),
    "list_if": (
        collect("b", 3, by="b", where="i < 0"),
        lambda: F.slice(F.sort_array(F.collect_list(F.when(F.col("i") < 0, F.col("b")))), 1, 3),
        0,
    ),
    "p_if": (
        approx_percentile("i", 0.5, k=4000, where="i > 0"),
        lambda: F.percentile_approx(F.when(F.col("i") > 0, F.col("i")), 0.5, 100_000),
        0,
    ),
    "exact_i": (count_distinct("i"), lambda: F.count_distinct("i"), 0),
    "exact_d": (count_distinct("d"), lambda: F.count_distinct("d"), 0),
    "exact_m": (count_distinct("m", where="i = 1"), lambda: F.count_distinct(F.when(F.col("i") == 1, F.col("m"))), 0),
    "exact_s": (count_distinct("s"), lambda: F.count_distinct("s"), 0),
    "exact_at": (count_distinct("at"), lambda: F.count_distinct("at"), 0),
    "few": (
        count_distinct("i", limit=17),
        lambda: F.when(F.count_distinct("i") <= 17, F.count_distinct("i")),
        0,
    ),
    "all_max": (collect_max("s", by="i"), lambda: all_of_most(100), 0),
    "few_max": (collect_max("s", by="i", limit=3), lambda: all_of_most(3), 0),
    "list": (
        collect("s", 5),
        lambda: F.slice(
            F.sort_array(
                F.collect_list(F.when(F.expr("at is not null and s is not null"), F.struct("at", "_offset", "s")))
            ),
            1,
            5,
        )["s"],
        0,
    ),
}


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Plans run as they are: to compile one of dozens of aggregates takes longer than a few hundred rows."""
    off = ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled")
    settings = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", **dict.fromkeys(off, "false")}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.usefixtures("interpreted")
def test_partials_of_any_split_merge_to_the_aggregate_of_all_rows(spark: SparkSession) -> None:
    app = an_app()
    stream = app.stream("t", schema=ROWS, event_time="at")
    stream.group_by("k").aggregate("all", **{name: ours for name, (ours, _, _) in AGGREGATES.items()})
    spec = spec_of(app, spark, "all")
    data = rows(spark).withColumn("_offset", F.abs(F.hash("b", "at", "s")).cast("bigint") % 1_000)
    # Three rounds, as three epochs: partials of a few rows each, merged with what was merged before.
    split = data.withColumn("split", F.abs(F.hash("b", "at", "d")) % 7)
    partials = split.groupBy("k", "split").agg(*spec.partial_columns()).toArrow()
    partials = partials.cast(pa.schema([each.with_nullable(True) for each in partials.schema]))
    without = pa.Table.from_pylist([{"k": "b"}, {"k": "new"}], partials.schema)  # nulls: no prior state
    early = spark.createDataFrame(partials.filter(pc.field("split") < 4)).groupBy("k").agg(*spec.merge_columns())
    late = spark.createDataFrame(pa.concat_tables([partials.filter(pc.field("split") >= 4), without])).drop("split")
    merged = early.union(late).groupBy("k").agg(*spec.merge_columns())
    assert [(each.name, each.dataType.simpleString()) for each in merged.schema.fields[1:]] == [
        (name, kind.simpleString()) for name, kind in spec.state_columns
    ]
    ours = {row["k"]: row for row in merged.select("k", *spec.finish_columns()).collect()}
    theirs = {
        row["k"]: row for row in data.groupBy("k").agg(*[f().alias(n) for n, (_, f, _) in AGGREGATES.items()]).collect()
    }

    assert ours.pop("new")["n"] == 0
    assert ours.keys() == theirs.keys() == {"a", "b", None, "nulls"}
    for key, row in theirs.items():
        for name, (_, _, apart) in AGGREGATES.items():
            expected: Any = pytest.approx(row[name], rel=apart) if apart and row[name] is not None else row[name]
            assert ours[key][name] == expected, (key, name)


def test_a_single_partial_is_the_aggregate_already(spark: SparkSession) -> None:
    app = an_app()
    stream = app.stream("t", schema=ROWS, event_time="at")
    stream.group_by("k").aggregate("all", n=count(), sd=stddev("i"), p=approx_percentile("i", 0.5), l=collect("i", 2))
    spec = spec_of(app, spark, "all")
    one = frame(spark, [("a", 4, 1, 1.0, None, "x", START)]).withColumn("_offset", F.lit(7))
    row = one.groupBy("k").agg(*spec.partial_columns()).select(*spec.finish_columns()).first()
    assert row is not None
    assert row.asDict() == {"n": 1, "sd": None, "p": 4, "l": [4]}


# Programs ------------------------------------------------------------------------------------------------------------


def test_distinct_values_are_forgotten_once_there_are_too_many(spark: SparkSession) -> None:
    app = an_app()
    stream = app.stream("t", schema="k STRING, i INT")
    stream.group_by("k").aggregate("all", n=count_distinct("i", limit=2))
    spec = spec_of(app, spark, "all")

    def partial(*values: int) -> DataFrame:
        rows = spark.range(1).select(F.explode(F.array(*map(F.lit, values))).alias("i"))
        return rows.groupBy(F.lit("a").alias("k")).agg(*spec.partial_columns())

    both = partial(1, 2, 2).unionAll(partial(2, 1)).groupBy("k").agg(*spec.merge_columns())
    found = both.select("*", *spec.finish_columns()).collect()
    assert [row.asDict() for row in found] == [{"k": "a", "n.values": [1, 2], "n.more": False, "n": 2}]
    over = both.unionAll(partial(3)).groupBy("k").agg(*spec.merge_columns())
    later = over.unionAll(partial(1)).groupBy("k").agg(*spec.merge_columns())
    found = later.select("*", *spec.finish_columns()).collect()
    assert [row.asDict() for row in found] == [{"k": "a", "n.values": [], "n.more": True, "n": None}]


def test_grouping_by_anything_but_the_key_makes_a_second_part(spark: SparkSession) -> None:
    app = an_app(num_standby_replicas=1)
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at", on_error=DeadLetter("dead"))
    airlines = app.table("airlines", schema=AIRLINE, key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay is not null")).join(airlines, "carrier")
    late.to("late", key="carrier")
    by_hour = late.group_by("origin", window("at", "1 hour", grace="10 minutes", retention="7 days"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay")).to("delays-by-hour")
    program = app.compile(spark)

    below, above = program.subtopologies
    assert isinstance(below.input, TopicInput)
    assert below.input_topics == ("flights", "airlines")
    assert [store.changelog for store in below.stores] == ["app-airlines-changelog"]
    rows_out, partials = below.branches
    assert [type(step) for step in rows_out.steps] == [Transform, Join]
    assert rows_out.steps == partials.steps  # what they share is compiled once
    assert rows_out.terminal == ToTopic(
        "late", ("carrier",), "json", ("carrier", "origin", "dep_delay", "distance", "at", "name")
    )
    assert isinstance(partials.terminal, ToPartials)

    assert above.input == PartialsInput("app-delays-repartition", partials.terminal.aggregate)
    (merging,) = above.branches
    assert merging.terminal == Aggregate(partials.terminal.aggregate, (ToTopic("delays-by-hour", None, "json"),))
    spec = merging.terminal.spec
    assert [name for name, _ in spec.state_columns] == ["n", "mean.sum", "mean.count"]
    assert [(name, kind.simpleString()) for name, kind in spec.output_columns] == [("n", "bigint"), ("mean", "double")]
    assert (spec.route, spec.routed_by, spec.event_time) == (Route.JSON, ("origin",), "at")

    assert program.sinks == ("late", "delays-by-hour", "dead")
    assert program.internal_topics == ("app-delays-repartition", "app-airlines-changelog", "app-delays-changelog")
    assert program.topology.subtopologies["0"].copartition_groups == (("airlines", "flights"),)
    (changelog,) = program.topology.subtopologies["1"].changelogs
    # 2013's event times would be deleted at once, so the log goes by the time of writing.
    assert changelog.configs == {
        "cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime", "retention.ms": "691200000",
    }  # fmt: skip
    assert app.compile(spark).fingerprint == program.fingerprint
    assert app.describe(spark) == DESCRIPTION


def test_groups_are_written_in_any_format(spark: SparkSession) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at")
    by_hour = flights.group_by("carrier", window("at", "1 hour", end="until")).aggregate(
        "n", n=count(), s=max_("origin")
    )
    by_hour.to("json").to("avro", format="avro", key=("until", "carrier"))
    flights.group_by("origin").aggregate("last", city=max_("origin")).to("text", format="string")
    plans = [subtopology_plan_of(each) for each in app.compile(spark).subtopologies]
    windowed, other = (branch for plan in plans for branch in plan.branches.values() if isinstance(branch, StoreOutput))
    assert (windowed.outputs, windowed.end) == (("json",), WindowEnd("until", 3_600_000))
    (avro,) = windowed.encoded
    assert (avro.key, avro.columns) == (("until", "carrier"), ("window", "until", "carrier", "n", "s"))
    (text,) = other.encoded
    assert (other.outputs, text.key, text.columns) == ((), None, ("city",))
    keys, values = group_records(
        text, pa.chunked_array([[b'{"origin":"JFK"}']]), pa.chunked_array([[b'{"city":"New York","state":{}}']])
    )
    assert (keys.to_pylist(), values.to_pylist()) == ([b'{"origin":"JFK"}'], [b"New York"])


def test_shortcuts_keep_what_is_known_of_a_stream(spark: SparkSession) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at")
    late = flights.where("dep_delay > 0").select("*", F.lit(1).alias("one")).with_columns(hours="dep_delay / 60")
    named = late.peek(print).select("carrier AS line", "at", "hours")
    by_hour = named.group_by("line", window("at", "1 hour", grace="1 minute"))
    by_hour.aggregate("n", n=count(), worst=max_("hours"))
    (subtopology,) = app.compile(spark).subtopologies
    (branch,) = subtopology.branches
    assert [type(step) for step in branch.steps] == [Transform, Transform, Transform, Peek, Transform]
    assert "Processor: KSTREAM-PEEK-0000000004 (stores: [])" in app.describe(spark)


def test_rows_know_whether_their_order_matters(spark: SparkSession) -> None:
    """It does where a window with a grace follows, directly or after they have moved again."""
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at")
    later = flights.transform(lambda df: df.withColumn("at", F.expr("at + interval 1 hour")))
    window_of = {grace: window("at", "1 hour", grace=grace) for grace in ("10 minutes", None)}
    later.repartition("origin").repartition("carrier").group_by("carrier", window_of["10 minutes"]).aggregate(
        "timed", n=count()
    )
    flights.repartition("distance").group_by("distance", window_of[None]).aggregate("untimed", n=count())
    subtopologies = app.compile(spark).subtopologies
    moves = [
        branch.terminal
        for subtopology in subtopologies
        for branch in subtopology.branches
        if isinstance(branch.terminal, ToRows)
    ]
    assert {move.key: move.by_stream_time for move in moves} == {
        ("origin",): True,
        ("carrier",): True,
        ("distance",): False,
    }


DESCRIPTION = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [airlines])
      --> KTABLE-SOURCE-0000000001
    Processor: KTABLE-SOURCE-0000000001 (stores: [airlines])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Source: KSTREAM-SOURCE-0000000002 (topics: [flights])
      --> KSTREAM-TRANSFORM-0000000003
    Processor: KSTREAM-TRANSFORM-0000000003 (stores: [])
      --> KSTREAM-JOIN-0000000004
      <-- KSTREAM-SOURCE-0000000002
    Processor: KSTREAM-JOIN-0000000004 (stores: [airlines])
      --> KSTREAM-SINK-0000000005, KSTREAM-COMBINE-0000000006
      <-- KSTREAM-TRANSFORM-0000000003
    Sink: KSTREAM-SINK-0000000005 (topic: late)
      <-- KSTREAM-JOIN-0000000004
    Processor: KSTREAM-COMBINE-0000000006 (stores: [])
      --> KSTREAM-SINK-0000000007
      <-- KSTREAM-JOIN-0000000004
    Sink: KSTREAM-SINK-0000000007 (topic: app-delays-repartition)
      <-- KSTREAM-COMBINE-0000000006

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000008 (topics: [app-delays-repartition])
      --> KSTREAM-AGGREGATE-0000000009
    Processor: KSTREAM-AGGREGATE-0000000009 (stores: [delays])
      --> KSTREAM-SINK-0000000010
      <-- KSTREAM-SOURCE-0000000008
    Sink: KSTREAM-SINK-0000000010 (topic: delays-by-hour)
      <-- KSTREAM-AGGREGATE-0000000009

"""


def static(df: DataFrame, schema: str | StructType) -> DataFrame:
    return df.sparkSession.createDataFrame([], schema)


@pytest.mark.parametrize(
    ("transform", "in_place"),
    [
        (lambda df: df, True),
        (lambda df: df.where("dep_delay > 0").withColumn("late", F.lit(True)).drop("at"), True),
        (lambda df: df.select("*", F.explode(F.array("distance", F.lit(1))).alias("x")), True),
        (lambda df: df.join(static(df, "origin STRING").groupBy("origin").count(), "origin", "left"), True),
        (lambda df: df.withColumn("carrier", F.upper("carrier")), False),
        (lambda df: df.drop("_partition"), True),
        (lambda df: df.select("carrier"), True),
        (lambda df: df.withColumn("_partition", F.lit(1)), False),
        (lambda df: df.withColumnRenamed("carrier", "c").withColumn("carrier", F.lit("x")), False),
        (lambda df: df.mapInArrow(lambda batches: batches, df.schema), False),
        (lambda df: df.union(df.withColumn("carrier", F.col("origin"))), False),
    ],
)
def test_the_key_is_known_as_long_as_its_columns_pass_through(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame], in_place: bool
) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier").transform(transform)
    flights.group_by("carrier").aggregate("n", n=count())
    program = app.compile(spark)
    assert len(program.subtopologies) == (1 if in_place else 2)
    spec = program.subtopologies[-1].aggregates[0]
    assert spec.route is (Route.TEXT if in_place else Route.JSON)


@pytest.mark.parametrize(
    "transform",
    [
        lambda df: df.withColumnRenamed("carrier", "line").withColumn("carrier", F.lit("x")),
        lambda df: df.select(F.col("carrier").alias("line"), "at").where("line is not null"),
        lambda df: df.withColumn("l", F.col("carrier")).drop("carrier").withColumnRenamed("l", "line"),
        lambda df: df.toDF("line", "from", "delay", "miles", "when", "_partition"),
    ],
)
def test_a_key_that_is_renamed_is_a_key_still(spark: SparkSession, transform: Callable[[DataFrame], DataFrame]) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at").transform(transform)
    airlines = app.table("airlines", schema="id STRING, name STRING", key="id")
    flights.join(airlines, {"line": "id"}).group_by("line").aggregate("n", n=count())
    (subtopology,) = app.compile(spark).subtopologies
    (spec,) = subtopology.aggregates
    assert (spec.route, spec.routed_by, spec.route_names) == (Route.TEXT, ("line",), ("carrier",))
    assert subtopology.partition_checked[0].key == ("carrier",)


def test_event_time_that_is_renamed_is_the_streams_still(spark: SparkSession) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="at")
    renamed = flights.transform(lambda df: df.withColumnRenamed("at", "when"))
    by_hour = renamed.group_by("carrier", window("when", "1 hour", grace="5 minutes"))
    by_hour.aggregate("n", n=count(), first=first("origin"))
    renamed.to("x")
    renamed.select("origin").to("y")
    assert spec_of(app, spark, "n").event_time == "when"
    (subtopology,) = app.compile(spark).subtopologies
    ends = [branch.terminal for branch in subtopology.branches if isinstance(branch.terminal, ToTopic)]
    assert [end.event_time for end in ends] == ["when", None]  # by which records get their timestamps


def test_avro_is_read_with_all_that_was_written(spark: SparkSession) -> None:
    app = an_app()
    app.stream("t", schema="a INT, b STRING, c DOUBLE", format="avro").group_by("b").aggregate("n", n=count())
    source = app.compile(spark).sources[0]
    whole = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"], "c": [2.0]})
    values = encoder("avro", source.schema).encode(whole)
    used = StructType([source.schema["b"]])  # as the plan has it
    assert decoder("avro", used, source.avro_schema).decode(values).columns.to_pylist() == [{"b": "x"}]


def test_joins_are_described_as_kafka_streams_does(spark: SparkSession) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, key="carrier")
    airlines = app.table("airlines", schema=AIRLINE, key="carrier")
    airports = app.global_table("airports", schema="origin STRING, city STRING", key="origin")
    flights.join(airlines, how="left").join(airports).to("x")
    described = app.describe(spark)
    assert "Processor: KSTREAM-LEFTJOIN-0000000003 (stores: [airlines])" in described
    assert "Processor: KSTREAM-JOIN-0000000004 (stores: [])" in described
    assert described.endswith(
        "  Sub-topology: 1 for global store (will not generate tasks)\n"
        "    Source: KSTREAM-SOURCE-0000000006 (topics: [airports])\n"
        "      --> KTABLE-SOURCE-0000000007\n"
        "    Processor: KTABLE-SOURCE-0000000007 (stores: [airports])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000006\n"
    )


def test_records_have_to_lie_where_they_belong_only_where_that_matters(spark: SparkSession) -> None:
    def partition_checked(write: Callable[[StreamsApp], Any]) -> list[list[str]]:
        app = an_app()
        write(app)
        return [
            [source.topic for source in subtopology.partition_checked]
            for subtopology in app.compile(spark).subtopologies
        ]

    def by_carrier(stream: Any) -> Any:
        return stream.group_by("carrier").aggregate("d", n=count())

    assert partition_checked(lambda app: by_carrier(_flights(app, key="carrier"))) == [["flights"]]
    assert partition_checked(lambda app: by_carrier(_flights(app))) == [[], []]
    assert partition_checked(lambda app: by_carrier(_flights(app, key="carrier").repartition("carrier"))) == [[], []]
    assert partition_checked(lambda app: _flights(app, key="carrier").to("x")) == [[]]
    assert partition_checked(lambda app: app.table("airlines", **A_TABLE)) == [[]]
    joined = [["flights", "airlines"]]
    assert (
        partition_checked(lambda app: _flights(app, key="carrier").join(app.table("airlines", **A_TABLE)).to("x"))
        == joined
    )
    assert partition_checked(lambda app: _flights(app).join(app.global_table("airlines", **A_TABLE)).to("x")) == [[]]


def test_repartitioned_rows_are_keyed_anew_and_joined(spark: SparkSession) -> None:
    app = an_app()
    airlines = app.table("airlines", schema=AIRLINE, key="carrier", name="lines")
    airports = app.global_table("airports", schema="origin STRING, city STRING", key="origin")
    flights = app.stream("flights", schema=FLIGHT, event_time="at")
    named = flights.repartition("carrier", partitions=3).join(airlines, how="left").join(airports)
    named.group_by("carrier").aggregate("n", n=count(), at=last("city"))
    program = app.compile(spark)
    below, above = program.subtopologies
    (branch,) = below.branches
    assert isinstance(branch.terminal, ToRows)
    topic = "app-flights-by-carrier-repartition"
    assert (branch.terminal.topic, branch.terminal.key, branch.terminal.event_time) == (topic, ("carrier",), "at")
    assert isinstance(above.input, RowsInput)
    assert (above.input.partitions, above.input.schema.names) == (
        3,
        ["carrier", "origin", "dep_delay", "distance", "at"],
    )
    assert above.input_topics == (topic, "airlines")
    assert program.topology.subtopologies["1"].copartition_groups == (("airlines", topic),)
    assert [table.name for table in program.globals] == ["airports"]
    assert "Sub-topology: 2 for global store (will not generate tasks)\n    Source: " in app.describe(spark)


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ({}, ["carrier", "hub", "origin"]),
        ({"prefix": "line_"}, ["carrier", "hub", "line_origin"]),
        ({"columns": ["id", "origin"]}, ["carrier", "hub", "id", "origin"]),
        ({"columns": {"origin": "home"}}, ["carrier", "hub", "home"]),
    ],
)
def test_a_tables_columns_are_added_as_the_join_names_them(
    spark: SparkSession, given: dict[str, Any], columns: list[str]
) -> None:
    app = an_app()
    lines = app.table("lines", schema="id STRING, origin STRING", key="id")
    stream = app.stream("t", schema="carrier STRING, hub STRING", key="carrier")
    stream.join(lines, on={"carrier": "id"}, **given).to("x")
    (subtopology,) = app.compile(spark).subtopologies
    (branch,) = subtopology.branches
    (join,) = branch.steps
    assert isinstance(join, Join)
    assert join.on == ("carrier",)
    assert isinstance(branch.terminal, ToTopic)
    assert list(branch.terminal.columns) == columns


def test_a_table_that_nothing_is_joined_to_is_kept_for_queries(spark: SparkSession) -> None:
    app = an_app()
    app.table("airlines", schema=AIRLINE, key="carrier")
    (subtopology,) = app.compile(spark).subtopologies
    assert (subtopology.input, subtopology.input_topics, subtopology.branches) == (None, ("airlines",), ())


def test_an_arrow_function_gets_repartitioned_rows(spark: SparkSession) -> None:
    app = an_app()
    flights = app.stream("flights", schema=FLIGHT, event_time="at")
    grouped = flights.group_by("origin", window("at", "1 hour"))
    grouped.aggregate_arrow("own", lambda rows, prior: prior, state="n BIGINT, worst DOUBLE").to("out")
    below, above = app.compile(spark).subtopologies
    assert isinstance(below.branches[0].terminal, ToRows)
    spec = above.aggregates[0]
    assert spec.arrow is not None
    assert spec.arrow.rows.names == ["window", "carrier", "origin", "dep_delay", "distance", "at"]
    assert [name for name, _ in spec.state_columns] == [name for name, _ in spec.output_columns] == ["n", "worst"]


# Wrong programs ------------------------------------------------------------------------------------------------------

A_TABLE = {"schema": AIRLINE, "key": "carrier"}


def _flights(app: StreamsApp, **more: Any) -> Any:
    return app.stream("flights", schema=FLIGHT, **more)


def _own(app: StreamsApp, own: Any) -> Any:
    return _flights(app).group_by("origin").aggregate("d", x=own)


def _avro(field: str) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": field, "type": "int"}]})


WRONG: dict[str, tuple[Callable[[StreamsApp], Any], str]] = {
    "unknown column of an aggregate": (
        lambda app: _flights(app).group_by("origin").aggregate("d", n=count(), mean=avg("delay")),
        r"^stream 'flights': aggregate\('d', mean=…\): .*`delay` cannot be resolved\. Did you mean .*`dep_delay`",
    ),
    "unknown column to group by": (
        lambda app: _flights(app).group_by("airport").aggregate("d", n=count()),
        r"group_by\('airport'\): there is no such column; there are carrier, origin, dep_delay, distance, at \(.*\)$",
    ),
    "unknown column, but for its case": (
        lambda app: _flights(app).group_by("Origin").aggregate("d", n=count()),
        r"there is no such column; did you mean 'origin'\?",
    ),
    "unknown column in a transform": (
        lambda app: _flights(app).transform(lambda df: df.select("nope")).to("x"),
        r"^stream 'flights': transform\(lambda\): A column, .* `nope` cannot be resolved\. Did you mean",
    ),
    "a number is wanted": (
        lambda app: _flights(app).group_by("origin").aggregate("d", mean=avg("carrier")),
        r"aggregate\('d', mean=…\): avg\('carrier'\) takes numbers, but 'carrier' is STRING",
    ),
    "a condition that is none": (
        lambda app: _flights(app).group_by("origin").aggregate("d", n=count(where="distance + 1")),
        r"aggregate\('d', n=…\): where='distance \+ 1' takes a condition, as \"price < 100\", but this is INT",
    ),
    "a condition of a column that isn't there": (
        lambda app: _flights(app).group_by("origin").aggregate("d", n=count_if("nothing > 1")),
        r"aggregate\('d', n=…\): .*`nothing` cannot be resolved",
    ),
    "distinct arrays": (
        lambda app: (
            _flights(app)
            .transform(lambda df: df.withColumn("a", F.array("distance")))
            .group_by("origin")
            .aggregate("d", n=count_distinct("a"))
        ),
        r"count_distinct\('a'\): 'a' is ARRAY<INT>; it takes columns of single values",
    ),
    "no event time": (
        lambda app: _flights(app).group_by("origin").aggregate("d", x=first("carrier")),
        r"first\('carrier'\) goes by event time, and the stream has none here: say event_time=",
    ),
    "a window over no timestamp": (
        lambda app: _flights(app).group_by("origin", window("distance", "1 hour")).aggregate("d", n=count()),
        r"window\('distance'\) needs a TIMESTAMP column, but 'distance' is INT\. If it counts milliseconds since "
        r"1970, say TIMESTAMP in the schema and timestamp_format=.*, or .*F\.timestamp_millis\(",
    ),
    "a window over text": (
        lambda app: _flights(app).group_by("carrier", window("origin", "1 hour")).aggregate("d", n=count()),
        r"window\('origin'\) needs a TIMESTAMP column, but 'origin' is STRING\. Say TIMESTAMP .*F\.to_timestamp\(",
    ),
    "a grace by a time that was changed": (
        lambda app: (
            app.stream("t", schema="k STRING, at TIMESTAMP", key="k", event_time="at")
            .transform(lambda df: df.withColumn("at", F.expr("at + interval 1 hour")))
            .group_by("k", window("at", "1 hour", grace="10 minutes"))
            .aggregate("d", n=count())
        ),
        r"a grace, which goes by 'at' as it was read, and stream 't': transform\(lambda\) changes it: make a column",
    ),
    "a grace by another time than the stream's": (
        lambda app: (
            _flights(app, key="origin")
            .group_by("origin", window("at", "1 hour", grace="10 minutes"))
            .aggregate("d", n=count())
        ),
        r"window\('at'\) has a grace, which goes by the stream's event time, and that is the time of its records\. Say"
        r" event_time='at'",
    ),
    "a grace by a changed time, of rows that are aggregated before they move": (
        lambda app: (
            _flights(app, event_time="at")
            .transform(lambda df: df.withColumn("at", F.expr("at + interval 1 hour")))
            .group_by("origin", window("at", "1 hour", grace="10 minutes"))
            .aggregate("d", n=count())
        ),
        r"goes by 'at' as it was read, .* changes it: .* say \.repartition\(…\) after it, which reads the new time",
    ),
    "a grace by another time, of rows that are aggregated before they move": (
        lambda app: (
            _flights(app).group_by("origin", window("at", "1 hour", grace="10 minutes")).aggregate("d", n=count())
        ),
        r"window\('at'\) has a grace, which goes by the stream's event time, and that is the time of its records\.",
    ),
    "a grace after what loses the stream time": (
        lambda app: (
            _flights(app, event_time="at")
            .transform(lambda df: df.unpivot(["origin", "at"], ["distance"], "name", "value"))
            .group_by("origin", window("at", "1 hour", grace="10 minutes"))
            .aggregate("d", n=count())
        ),
        r"goes by the stream time at which a row was read, and a transform before it loses that: .* \.repartition\(…\)",
    ),
    "rows without a partition that are to go in order": (
        lambda app: (
            _flights(app, event_time="at")
            .transform(lambda df: df.drop("_partition").mapInArrow(lambda batches: batches, FLIGHT))
            .repartition("origin")
            .repartition("carrier")
            .group_by("carrier", window("at", "1 hour", grace="10 minutes"))
            .aggregate("d", n=count())
        ),
        r"to be repartitioned by origin: a window with a grace, .* follows, .* loses the column _partition",
    ),
    "event time that is no timestamp": (
        lambda app: _flights(app, event_time="distance").to("x"),
        r"stream 'flights': event_time='distance' must be a TIMESTAMP, but it is INT\. .*timestamp_format=.*\.alias\(",
    ),
    "a group of doubles": (
        lambda app: _flights(app).group_by("dep_delay").aggregate("d", n=count()),
        r"'dep_delay' is DOUBLE, whose values make no keys",
    ),
    "a shortcut's unknown column": (
        lambda app: _flights(app).where("nothing > 1").to("x"),
        r"^stream 'flights': where\('nothing > 1'\): .*`nothing` cannot be resolved",
    ),
    "a shortcut that goes over several rows": (
        lambda app: _flights(app).select("max(distance)").to("x"),
        r"^stream 'flights': select\('max\(distance\)'\): groupBy or an aggregate would go over",
    ),
    "a transform without return": (
        lambda app: _flights(app).transform(lambda df: None).to("x"),
        r"transform\(lambda\) must return a DataFrame, but it returned None: is a return missing\?",
    ),
    "a transform that joins a stream of Spark's own": (
        lambda app: (
            _flights(app)
            .transform(
                lambda df: df.join(
                    df.sparkSession.readStream.format("rate").load().selectExpr("STRING(value) AS origin"), "origin"
                )
            )
            .to("x")
        ),
        r"transform\(lambda\) has a stream of Spark's own in it, .* read its topic by app\.stream or app\.table",
    ),
    "a transform that fails": (
        lambda app: _flights(app).transform(lambda df: 1 // 0).to("x"),
        r"transform\(lambda\) failed: ZeroDivisionError",
    ),
    "a transform that groups": (
        lambda app: _flights(app).transform(lambda df: df.groupBy("origin").count()).to("x"),
        r"groupBy or an aggregate would go over those rows that happen to be in an epoch",
    ),
    "rows of elsewhere": (
        lambda app: _flights(app).transform(lambda df: df.union(static(df, df.schema))).to("x"),
        r"lambda\): a union with other rows would add them again in each epoch\. Write them to a topic, once;",
    ),
    "a transform that keeps what isn't the stream's": (
        lambda app: _flights(app).transform(lambda df: df.join(static(df, "origin STRING"), "origin", "right")).to("x"),
        r"a join that keeps all rows of the other side would go over",
    ),
    "a transform that joins the stream with itself": (
        lambda app: _flights(app).transform(lambda df: df.join(df.select("origin"), "origin")).to("x"),
        r"a join of the stream with itself would go over",
    ),
    "a transform that limits": (
        lambda app: _flights(app).transform(lambda df: df.limit(3)).to("x"),
        r"transform\(lambda\): limit would go over those rows",
    ),
    "a transform that subtracts": (
        lambda app: _flights(app).transform(lambda df: df.exceptAll(static(df, df.schema))).to("x"),
        r"transform\(lambda\): exceptAll would go over those rows",
    ),
    "a transform that intersects": (
        lambda app: _flights(app).transform(lambda df: df.intersectAll(static(df, df.schema))).to("x"),
        r"transform\(lambda\): intersectAll would go over those rows",
    ),
    "a join on what is no key": (
        lambda app: _flights(app, key="origin").join(app.table("airlines", **A_TABLE), "origin").to("x"),
        r"join\('airlines'\) on 'origin': a table is joined by its key, 'carrier'\. "
        r"Say on=\{\"origin\": \"carrier\"\}, the stream's column and the table's, or give the table that "
        r"key \(app\.table",
    ),
    "a join on a column that the stream calls otherwise": (
        lambda app: app.stream("t", schema="line STRING", key="line").join(app.table("a", **A_TABLE)).to("x"),
        r"on 'carrier': there is no such column; there are line\. .* say on=\{\"its column\": \"carrier\"\}",
    ),
    "a join that adds what isn't there": (
        lambda app: _flights(app, key="carrier").join(app.table("a", **A_TABLE), columns=["city"]).to("x"),
        r"join\('a'\): columns: 'city' of the table: there is no such column; there are carrier, name",
    ),
    "a join by keys of other names": (
        lambda app: (
            app.stream("t", schema="a INT, b INT", key=("a", "b"))
            .join(app.table("u", schema="a INT, c INT, d INT", key=("a", "c")), {"a": "a", "b": "c"})
            .to("x")
        ),
        r"keys of several columns have their names in them, and the stream's are 'a', 'b', the table's 'a', 'c', .*"
        r"Rename the stream's columns in a transform, as the table calls them",
    ),
    "a join of two types": (
        lambda app: (
            _flights(app, key="carrier").join(app.table("a", schema="carrier INT, x INT", key="carrier")).to("x")
        ),
        r"'carrier' is STRING in the stream and INT in the table; cast it",
    ),
    "a join that has a column twice": (
        lambda app: (
            _flights(app, key="carrier")
            .join(app.table("a", schema="carrier STRING, origin STRING", key="carrier"))
            .to("x")
        ),
        r"both have the column 'origin'\. Say prefix=\"a_\", .* as columns=\{\"origin\": \"a_origin\"\}",
    ),
    "a schema that isn't": (
        lambda app: app.stream("t", schema="carrier STRIN").to("x"),
        r"stream 't': schema='carrier STRIN' can't be read as columns like \"origin STRING, dep_delay DOUBLE\"",
    ),
    "a column of Kohort's own": (
        lambda app: _flights(app).transform(lambda df: df.withColumn("_window", F.lit(1))).to("x"),
        r"transform\(lambda\): a column can't be called '_window', as one of Kohort's own",
    ),
    "a column of Kohort's own, but for its case": (
        lambda app: _flights(app).transform(lambda df: df.withColumn("_Window", F.lit(1))).to("x"),
        r"a column can't be called '_Window', as one of Kohort's own",
    ),
    "a transform that makes a column twice": (
        lambda app: _flights(app).transform(lambda df: df.select("*", F.lit(1).alias("Origin"))).to("x"),
        r"transform\(lambda\): the column 'origin' is there twice",
    ),
    "a transform that leaves nothing": (
        lambda app: _flights(app).transform(lambda df: df.select("_partition")).to("x"),
        r"to\('x'\): there is no column left to write",
    ),
    "a type that no format has": (
        lambda app: app.stream("t", schema="a INT, v VARIANT").to("x"),
        r"^stream 't': v: variant can't be read or written \(.*\)$",
    ),
    "a type of tables": (
        lambda app: app.stream("t", schema="a STRUCT<b: VARCHAR(3)>").to("x"),
        r"^stream 't': a is STRUCT<B:VARCHAR\(3\)>, which only tables have: write STRING",
    ),
    "a type that can't be repartitioned": (
        lambda app: (
            _flights(app)
            .transform(lambda df: df.withColumn("v", F.parse_json("carrier")))
            .repartition("origin")
            .to("x")
        ),
        r"^stream 'flights', to a repartition topic: v: variant can't be",
    ),
    "a state that can't be kept": (
        lambda app: (
            _flights(app)
            .transform(lambda df: df.withColumn("v", F.expr("interval 1 day")))
            .group_by("origin")
            .aggregate("d", x=max_("v"))
        ),
        r"aggregate\('d'\): x: interval day can't be read or written",
    ),
    "a key of structs": (
        lambda app: app.table("t", schema="a STRUCT<b: INT>", key="a"),
        r"^table 't': key 'a' is STRUCT<B:INT>, which no record's key holds",
    ),
    "Avro of other columns": (
        lambda app: app.stream("t", schema="a INT", format="avro", avro_schema=_avro("b")).to("x"),
        r"^stream 't': format=\"avro\": the Avro schema has no field a, but b \(.*\)$",
    ),
    "Avro of columns that aren't there": (
        lambda app: app.stream("t", schema="a INT").to("x", format="avro", schema=_avro("b")),
        r"^stream 't': to\('x'\): the Avro schema has fields that the columns lack: b \(.*\)$",
    ),
    "text of two columns": (
        lambda app: _flights(app).to("x", format="string"),
        r"format=\"string\" writes one column, but there are carrier, origin, .*Make a column `value`",
    ),
    "raw values of numbers": (
        lambda app: app.stream("t", schema="a INT, b INT", format="raw").to("x"),
        r"stream 't': format=\"raw\" has one column, of type BINARY",
    ),
    "a result as key": (
        lambda app: _flights(app).group_by("origin").aggregate("d", n=count()).to("x", key="n"),
        r"aggregate\('d'\)\.to\('x'\): key 'n': that is a result, which changes; .* what is grouped by: origin",
    ),
    "an unknown key of groups": (
        lambda app: _flights(app).group_by("origin").aggregate("d", n=count()).to("x", key="m"),
        r"aggregate\('d'\)\.to\('x'\): key 'm': there is no such column; there are origin, n",
    ),
    "a text of two results": (
        lambda app: (
            _flights(app).group_by("origin").aggregate("d", n=count(), m=count()).to("x", format="string")
        ),
        r"to\('x'\): format=\"string\" writes one column, but there are n, m\.",
    ),
    "groups by Avro of other columns": (
        lambda app: (
            _flights(app).group_by("origin").aggregate("d", n=count()).to("x", format="avro", schema=_avro("b"))
        ),
        r"to\('x'\): the Avro schema has fields that the columns lack: b",
    ),
    "headers that aren't": (
        lambda app: _flights(app).to("x", headers="origin"),
        r"to\('x'\): headers='origin': 'origin' is STRING; headers are a MAP<STRING, BINARY>, or an ARRAY",
    ),
    "a tombstone that is no condition": (
        lambda app: _flights(app).to("x", key="origin", tombstone="distance"),
        r"to\('x'\): tombstone='distance': this takes a condition, but it is INT",
    ),
    "a tombstone of a column that isn't there": (
        lambda app: _flights(app).to("x", key="origin", tombstone="deleted"),
        r"to\('x'\): tombstone='deleted': .*`deleted` cannot be resolved",
    ),
    "numbers that name topics": (
        lambda app: _flights(app).to(column="distance"),
        r"to\(column='distance'\): names of topics are STRING, but 'distance' is INT",
    ),
    "headers of two kinds": (
        lambda app: app.stream("t", schema="_headers STRING", headers=True).to("x"),
        r"stream 't': the column '_headers' is there twice",
    ),
    "an unknown key to write by": (
        lambda app: _flights(app).to("x", key="airport"),
        r"to\('x'\): key 'airport': there is no such column",
    ),
    "two stores of one name": (
        lambda app: (
            app.table("airlines", **A_TABLE, name="n"),
            _flights(app).group_by("origin").aggregate("n", n=count()),
        ),
        r"two stores are called 'n': tables and aggregates need names of their own",
    ),
    "a stream without an end": (
        lambda app: _flights(app).transform(lambda df: df),
        r"stream 'flights' goes nowhere: end it with \.to\(…\), or with \.group_by\(…\)\.aggregate\(…\)",
    ),
    "nothing at all": (lambda app: None, r"the program does nothing"),
    "one table, two streams": (
        lambda app: [
            app.stream(topic, schema=FLIGHT, key="carrier").join(table).to("x")
            for table in [app.table("airlines", **A_TABLE)]
            for topic in ("a", "b")
        ],
        r"stream 'b': table 'airlines' is joined to another topic's stream already.*Make it an app\.global_table",
    ),
    "a repartitioned stream and a table by crc32": (
        lambda app: (
            _flights(app).repartition("carrier").join(app.table("airlines", **A_TABLE, partitioner="crc32")).to("x")
        ),
        r"the stream is partitioned by murmur2, and the table by crc32, so .*: say the same partitioner=",
    ),
    "a union by crc32 and a table by crc32": (
        lambda app: (
            app.stream("a", schema=FLIGHT, key="carrier", partitioner="crc32")
            .union(app.stream("b", schema=FLIGHT, key="carrier", partitioner="crc32"))
            .join(app.table("airlines", **A_TABLE, partitioner="crc32"))
            .to("x")
        ),
        r"several streams are united.*through a topic, partitioned by murmur2, and the table is by crc32.*global_table",
    ),
    "a key without a certain text": (
        lambda app: (
            app.stream("t", schema="x DOUBLE", key="x").join(app.table("u", schema="x DOUBLE, y INT", key="x")).to("z")
        ),
        r"join\('u'\) on 'x': 'x' is DOUBLE, whose text isn't always the same.*Make it a STRING",
    ),
    "own aggregate whose types differ": (
        lambda app: _own(app, aggregation(update=lambda: F.sum("distance"), merge=F.collect_list)),
        r"update gives bigint, but merge makes array<bigint> of it",
    ),
    "own aggregate that isn't one": (
        lambda app: _own(app, aggregation(update=lambda: F.col("distance"), merge=F.max)),
        r"aggregate\('d', x=…\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_told_what_to_write(
    spark: SparkSession, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write, message = WRONG[name]
    app = an_app()
    write(app)
    with pytest.raises(ProgramError, match=message) as caught:
        app.compile(spark)
    assert "SQLSTATE" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "JavaError" not in capfd.readouterr().err  # PySpark would log a page
