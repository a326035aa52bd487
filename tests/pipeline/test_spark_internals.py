"""All that Kohort relies on beyond PySpark's public API, one case each: what a new version of Spark breaks, fails here.

`kohort.spark.internals` is the only module that goes by any of it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark import internals
from kohort.spark.errors import ProgramError
from kohort.spark.internals import (
    WORKER_MODULE,
    NodeName,
    PlanNode,
    analyzed,
    arrow_schema,
    column_text,
    empty_frame,
    error_sentence,
    executed,
    expression_text,
    frame_of,
    leave_out_warning_of_pandas,
    optimized,
    spark_type,
    stop_progress_bar,
    unix_sockets_to_workers,
    unlogged_errors,
    workers_forked_from,
)
from tests.tools import JAVA

from ..waiting import eventually

Frames = Callable[[DataFrame], DataFrame]
SCHEMA: Final = "k STRING, v BIGINT"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("a", 1), ("b", 2)], SCHEMA)


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def first(left: Any, right: Any) -> Any:
    return left


def nodes(plan: PlanNode) -> Iterator[PlanNode]:
    yield plan
    for child in plan.children:
        yield from nodes(child)


def find(plan: PlanNode, name: str) -> PlanNode:
    return next(each for each in nodes(plan) if each.name == name)


def sql(text: str) -> Frames:
    return lambda df: df.sparkSession.sql(text, df=df)


def viewed(df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("internals")
    return df.sparkSession.table("internals")


def other(df: DataFrame) -> DataFrame:
    return df.withColumnRenamed("v", "w")


# Names of nodes ------------------------------------------------------------------------------------------------------

ANALYZED: Final[dict[NodeName, Frames]] = {
    NodeName.AGGREGATE: lambda df: df.groupBy("k").count(),
    NodeName.CO_GROUPED_IN_ARROW: lambda df: df.groupBy("k").cogroup(df.groupBy("k")).applyInArrow(first, SCHEMA),
    NodeName.CO_GROUPED_IN_PANDAS: lambda df: df.groupBy("k").cogroup(df.groupBy("k")).applyInPandas(first, SCHEMA),
    NodeName.COLLECT_METRICS: lambda df: df.observe("seen", F.count("v").alias("n")),
    NodeName.DEDUPLICATE: lambda df: df.dropDuplicates(["k"]),
    NodeName.DISTINCT: sql("SELECT DISTINCT k FROM {df}"),
    NodeName.EXCEPT: lambda df: df.subtract(df.where("v > 1")),
    NodeName.EXCEPT_ALL: lambda df: df.exceptAll(df.where("v > 1")),
    NodeName.FILTER: lambda df: df.where("v > 1"),
    NodeName.GENERATE: lambda df: df.select(F.explode(F.array("v"))),
    NodeName.GROUPED_IN_ARROW: lambda df: df.groupBy("k").applyInArrow(lambda rows: rows, SCHEMA),
    NodeName.GROUPED_IN_PANDAS: lambda df: df.groupBy("k").applyInPandas(lambda rows: rows, SCHEMA),
    NodeName.HINT: lambda df: F.broadcast(df),
    NodeName.INTERSECT: lambda df: df.intersect(df.where("v > 1")),
    NodeName.INTERSECT_ALL: lambda df: df.intersectAll(df.where("v > 1")),
    NodeName.JOIN: lambda df: df.join(other(df), "k"),
    NodeName.LATERAL_JOIN: sql("SELECT * FROM {df}, LATERAL (SELECT v + 1 AS w)"),
    NodeName.LIMIT: lambda df: df.limit(1),
    NodeName.OFFSET: lambda df: df.offset(1),
    NodeName.PROJECT: lambda df: df.select("k"),
    NodeName.REPARTITION: lambda df: df.coalesce(1),
    NodeName.REPARTITION_BY: lambda df: df.repartition(2, "k"),
    NodeName.SAMPLE: lambda df: df.sample(0.5, seed=1),
    NodeName.SORT: lambda df: df.orderBy("k"),
    NodeName.SUBQUERY_ALIAS: lambda df: df.alias("x"),
    NodeName.UNION: lambda df: df.union(df),
    NodeName.VIEW: viewed,
    NodeName.WINDOW: lambda df: df.select(F.row_number().over(Window.orderBy("v"))),
    NodeName.WITH_CTE: sql("WITH some AS (SELECT * FROM {df}) SELECT * FROM some"),
}
OPTIMIZED: Final[dict[NodeName, Frames]] = {
    NodeName.AGGREGATE: ANALYZED[NodeName.AGGREGATE],
    NodeName.CACHED: lambda df: df.where("v > 0").cache(),
    NodeName.FILTER: ANALYZED[NodeName.FILTER],
    NodeName.MAP_IN_ARROW: lambda df: df.sparkSession.range(1).mapInArrow(same, "id BIGINT"),
    NodeName.PROJECT: ANALYZED[NodeName.PROJECT],
    NodeName.RANGE: lambda df: df.sparkSession.range(1).mapInArrow(same, "id BIGINT"),
    NodeName.RDD: lambda df: df.localCheckpoint(),
}


def test_each_name_has_a_case() -> None:
    assert ANALYZED.keys() | OPTIMIZED.keys() == set(NodeName)


@pytest.mark.parametrize("name", ANALYZED, ids=str)
def test_an_analyzed_plan_names_its_nodes(frame: DataFrame, name: NodeName) -> None:
    assert name in [each.name for each in nodes(analyzed(ANALYZED[name](frame)))]


@pytest.mark.parametrize("name", OPTIMIZED, ids=str)
def test_an_optimized_plan_names_its_nodes(frame: DataFrame, name: NodeName) -> None:
    made = OPTIMIZED[name](frame)
    try:
        assert name in [each.name for each in nodes(optimized(made))]
    finally:
        made.unpersist()


@pytest.mark.parametrize(
    ("adaptive", "made"),
    [
        (False, lambda df: df.groupBy("k").count()),
        (False, lambda df: df.repartition(2)),
        (False, lambda df: df.join(F.broadcast(other(df)), "k")),
        (True, lambda df: df.groupBy("k").count()),
    ],
    ids=["shuffle", "round robin", "broadcast", "adaptive"],
)
def test_an_executed_plan_shows_what_moves_rows(
    spark: SparkSession, frame: DataFrame, adaptive: bool, made: Frames
) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        assert any(each.is_exchange for each in nodes(executed(made(frame))))
        assert not any(each.is_exchange for each in nodes(executed(frame.where("v > 1"))))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", str(before))


# Nodes ---------------------------------------------------------------------------------------------------------------


def test_columns_keep_their_ids_as_long_as_they_pass(frame: DataFrame) -> None:
    source = analyzed(frame)
    made = analyzed(frame.select("k", (F.col("v") + 1).alias("v"), F.col("k").alias("again")))
    assert [each.name for each in made.output] == ["k", "v", "again"]
    assert made.output[0].id == source.output[0].id
    assert len({each.id for each in (*made.output, *source.output)}) == 4


def test_a_projection_says_which_columns_it_renames(frame: DataFrame) -> None:
    ids = {column.name: column.id for column in analyzed(frame).output}
    plan = analyzed(frame.select(F.col("k").alias("key"), "v", (F.col("v") + 1).alias("more")))
    after = {column.name: column.id for column in plan.output}
    assert plan.renamed == {after["key"]: ids["k"]}
    assert analyzed(frame).renamed == {}


def test_a_node_says_which_columns_it_uses(frame: DataFrame) -> None:
    k, v = analyzed(frame).output
    made = analyzed(frame.where("v > 1").select("k"))
    assert made.references == {k.id}
    assert find(made, NodeName.FILTER).references == {v.id}


def test_a_plan_has_a_first_leaf_and_is_the_same_with_other_ids(frame: DataFrame) -> None:
    source = analyzed(frame)
    leaf = analyzed(frame.where("v > 1").select("k")).first_leaf
    assert leaf.children == () and leaf.same_result(source)
    left, right = find(analyzed(frame.join(frame, "k")), NodeName.JOIN).children
    assert left.output[0].id != right.output[0].id
    assert left.same_result(right) and not left.same_result(analyzed(frame.select("k")))


@pytest.mark.parametrize(
    ("how", "sides"),
    [("inner", set()), ("left", {0}), ("right", {1}), ("outer", {0, 1}), ("leftsemi", set()), ("leftanti", set())],
)
def test_a_join_says_whose_rows_all_stay(frame: DataFrame, how: str, sides: set[int]) -> None:
    assert find(analyzed(frame.join(other(frame), "k", how)), NodeName.JOIN).outer_sides == sides


def test_a_cache_has_the_plan_that_is_cached(frame: DataFrame) -> None:
    cached = frame.where("v > 7").cache()
    try:
        plan = find(optimized(cached.select("k")), NodeName.CACHED).cached_plan
        assert plan.mentions("v") and not plan.mentions("w")
    finally:
        cached.unpersist()


@pytest.mark.parametrize(
    "column", [F.rand, F.randn, F.uuid, lambda: F.shuffle(F.array("v")), lambda: F.expr("random()")]
)
def test_a_plan_says_that_it_has_random_numbers(frame: DataFrame, column: Callable[[], Any]) -> None:
    assert analyzed(frame.select(column())).has_random_numbers
    assert not analyzed(frame.select("v")).has_random_numbers


@pytest.mark.parametrize(
    "text",
    [
        "v = (SELECT max(id) FROM range(3))",
        "v IN (SELECT id FROM range(3))",
        "EXISTS (SELECT id FROM range(3) WHERE id = v)",
    ],
    ids=["scalar", "in", "exists"],
)
def test_a_plan_says_that_it_has_subqueries(frame: DataFrame, text: str) -> None:
    assert analyzed(sql(f"SELECT * FROM {{df}} WHERE {text}")(frame)).has_subqueries
    assert not analyzed(frame.where("v > 1")).has_subqueries


@pytest.mark.parametrize(
    "column",
    [
        F.current_timestamp,
        F.current_date,
        F.curdate,
        F.current_time,
        F.now,
        F.localtimestamp,
        F.unix_timestamp,
        lambda: F.expr("current_timestamp"),
    ],
)
def test_a_plan_says_that_it_reads_the_clock(frame: DataFrame, column: Callable[[], Any]) -> None:
    assert analyzed(frame.select(column())).reads_clock
    assert not analyzed(frame.select(F.year(F.lit("2013-01-01").cast("date")))).reads_clock


# Plans that are rebuilt ----------------------------------------------------------------------------------------------


def test_a_plan_is_rebuilt_over_other_children_and_with_more_columns(frame: DataFrame) -> None:
    made = analyzed(frame.select((F.col("v") * 10).alias("ten")))
    rebuilt = made.with_children([analyzed(frame.where("v > 1"))]).with_columns(analyzed(frame).output[:1])
    assert frame_of(rebuilt).columns == ["ten", "k"]
    assert [tuple(row) for row in frame_of(rebuilt).collect()] == [(20, "b")]


def test_a_plan_is_projected(frame: DataFrame) -> None:
    source = analyzed(frame)
    projected = source.projected([source.output[1]])
    assert projected.name == NodeName.PROJECT
    assert sorted(tuple(row) for row in frame_of(projected).collect()) == [(1,), (2,)]


def test_an_empty_frame_has_its_columns_without_a_job(spark: SparkSession) -> None:
    schema = T.StructType().add("a b", T.TimestampType()).add("n", T.LongType(), nullable=False)
    found = empty_frame(spark, schema)
    assert found.schema == schema
    assert [each.name for each in nodes(optimized(found))] == ["LocalRelation"]


# Types ---------------------------------------------------------------------------------------------------------------


def test_types_are_exchanged_with_arrow() -> None:
    schema = (
        T.StructType().add("at", T.TimestampType()).add("d", T.DecimalType(9, 2)).add("n", T.ArrayType(T.LongType()))
    )
    given = arrow_schema(schema)
    assert given.field("at").type == pa.timestamp("us", "UTC")
    assert given.field("d").type == pa.decimal128(9, 2)
    assert spark_type(given.field("n").type) == T.ArrayType(T.LongType())


# What Spark prints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (lambda: F.col("at"), "at"),
        (lambda: F.col("`a.b`"), "`a.b`"),
        (lambda: F.timestamp_millis("dateTime"), "timestamp_millis(dateTime)"),
        (lambda: F.timestamp_millis("dateTime").alias("at"), "timestamp_millis(dateTime) AS at"),
        (lambda: F.timestamp_seconds(F.col("n")).alias("at"), "timestamp_seconds(n) AS at"),
        (lambda: F.avg("x"), "avg(x)"),
        (lambda: F.window("at", "1 hour"), "window(at, '1 hour', '1 hour', '0 second')"),
        (lambda: F.session_window("at", "1 hour"), "session_window(at, '1 hour')"),
    ],
)
def test_an_expression_is_printed(spark: SparkSession, column: Callable[[], Any], text: str) -> None:
    assert column_text(column()) == text


@pytest.mark.parametrize(
    "column",
    [
        lambda: F.transform("a", lambda one: F.transform("b", lambda two: one + two)),
        lambda: F.aggregate("a", F.lit(0), lambda left, right: left + right),
        lambda: F.col("k").cast("binary") == b"JFK",
        lambda: F.udf(len, "int")("k"),
        lambda: F.udf(len, "int")(F.transform("a", lambda one: one + 1)),
    ],
    ids=["nested functions", "aggregate", "binary", "UDF", "UDF of a function"],
)
def test_an_expression_that_is_made_again_has_the_same_text(spark: SparkSession, column: Callable[[], Any]) -> None:
    assert expression_text(column()) == expression_text(column())


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            lambda df: df.select("nope"),
            "A column, variable, or function parameter with name `nope` cannot be resolved. Did you mean one of the "
            "following? [`k`, `v`].",
        ),
        (
            lambda df: df.select(F.col("k") + F.array("v")),
            'Cannot resolve "(k + array(v))" due to data type mismatch: the left and right operands of the binary '
            'operator have incompatible types ("STRING" and "ARRAY<BIGINT>").',
        ),
        (lambda df: T.StructType.fromDDL("k STRANGE"), 'Unsupported data type "STRANGE".'),
    ],
    ids=["name", "type", "DDL"],
)
def test_an_error_says_in_a_sentence_what_is_wrong(frame: DataFrame, made: Frames, sentence: str) -> None:
    with unlogged_errors(), pytest.raises(PySparkException) as raised:
        made(frame)
    assert error_sentence(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("kind", "wrong"), [("DataFrame", lambda df: df.select("nope")), ("SQL", lambda df: df.select(F.expr("nope + 1")))]
)
def test_errors_arent_logged_meanwhile(frame: DataFrame, kind: str, wrong: Frames) -> None:
    logged: list[logging.LogRecord] = []
    logger = PySparkLogger.getLogger(f"{kind}QueryContextLogger")
    handler = logging.Handler()
    handler.emit = logged.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        with unlogged_errors(), pytest.raises(PySparkException):
            wrong(frame)
        assert not logged
        with pytest.raises(PySparkException):
            wrong(frame)
        assert logged
    finally:
        logger.removeHandler(handler)


def test_a_progress_bar_that_is_there_is_stopped(spark: SparkSession) -> None:
    stop_progress_bar(spark)  # the session has none
    jvm = spark._jvm
    context = spark.sparkContext._jsc.sc()

    def refreshing() -> bool:
        return any(each.getName() == "refresh progress" for each in jvm.java.lang.Thread.getAllStackTraces().keySet())

    field = context.getClass().getDeclaredField("_progressBar")
    field.setAccessible(True)
    before = field.get(context)
    field.set(context, jvm.scala.Option.apply(jvm.org.apache.spark.ui.ConsoleProgressBar(context)))
    try:
        assert refreshing()
        stop_progress_bar(spark)
        eventually(lambda: not refreshing(), what="the bar's timer ends")
    finally:
        field.set(context, before)


UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
SOCKET_DIRECTORY: Final = "spark.python.unix.domain.socket.dir"


@pytest.mark.parametrize(
    "before", [False, pytest.param(True, marks=pytest.mark.long)], ids=["no worker before", "one before"]
)
def test_the_first_python_worker_decides_for_unix_sockets(before: bool) -> None:
    """In a process of its own. Each task has a worker of its own, some from after the settings were taken back."""
    JAVA.require()
    program = textwrap.dedent(
        """
        import os
        import stat
        import sys
        import tempfile
        import pyarrow as pa
        from pyspark.sql import SparkSession
        from kohort.spark.internals import unix_sockets_to_workers

        def look(batches):
            for _ in batches:
                found = os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false")
                yield pa.RecordBatch.from_pydict({"found": [found.lower()]})

        def ask():
            return spark.range(0, 1, 1, 1).mapInArrow(look, "found STRING").head().found

        spark = (
            SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.python.worker.reuse", "false").getOrCreate()
        )
        if "before" in sys.argv:
            ask()
        with unix_sockets_to_workers(spark):
            print(ask())
        print(ask(), spark.sparkContext._jsc.sc().conf().contains("spark.python.unix.domain.socket.enabled"))
        print(spark.sparkContext.parallelize([1, 2], 1).map(lambda n: n + 1).collect())
        (directory,) = (each for each in os.scandir(tempfile.gettempdir()) if each.name.startswith("kohort-spark-"))
        print(stat.filemode(directory.stat().st_mode))
        print([each for each in os.listdir(tempfile.gettempdir()) if each.endswith(".sock")])
        """
    )
    tmp = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's path is too long for sockets
    try:
        options = f'--driver-java-options "-Djava.io.tmpdir={tmp}" pyspark-shell'
        environment = {**os.environ, "TMPDIR": str(tmp), "PYSPARK_SUBMIT_ARGS": options}
        command = [sys.executable, "-c", program, *(["before"] if before else [])]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        used = "false" if before else "true"
        assert done.stdout.splitlines()[-5:] == [used, f"{used} False", "[2, 3]", "drwx------", "[]"], done.stderr
        assert not list(tmp.glob("kohort-spark-*"))
    finally:
        shutil.rmtree(tmp)


@pytest.mark.parametrize(("name", "value"), [(UNIX_SOCKETS, "false"), (SOCKET_DIRECTORY, "/somewhere")])
def test_the_users_choice_of_sockets_stays(spark: SparkSession, name: str, value: str) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    names = (UNIX_SOCKETS, SOCKET_DIRECTORY)
    conf.set(name, value)
    try:
        before = [conf.contains(each) for each in names]
        with unix_sockets_to_workers(spark):
            assert [conf.contains(each) for each in names] == before and conf.get(name) == value
        assert [conf.contains(each) for each in names] == before and conf.get(name) == value
    finally:
        conf.remove(name)


def test_executors_of_a_cluster_get_no_sockets_of_the_drivers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext._jsc.sc()

    class OfACluster:
        """The context, but for that."""

        def isLocal(self) -> bool:  # noqa: N802 -- as in Spark
            return False

        def conf(self) -> Any:
            return context.conf()

    class Handle:
        def sc(self) -> OfACluster:
            return OfACluster()

    assert context.isLocal()
    monkeypatch.setattr(spark.sparkContext, "_jsc", Handle())
    with unix_sockets_to_workers(spark):
        assert not context.conf().contains(UNIX_SOCKETS) and not context.conf().contains(SOCKET_DIRECTORY)


@pytest.mark.parametrize(("length", "used"), [(60, True), (61, False)])
def test_unix_sockets_arent_used_where_their_path_would_be_too_long(
    spark: SparkSession, length: int, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = "/" + (length - 1) * "d"
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: directory)
    internals._socket_directory.cache_clear()
    conf = spark.sparkContext._jsc.sc().conf()
    try:
        with unix_sockets_to_workers(spark):
            assert conf.contains(UNIX_SOCKETS) is used
    finally:
        internals._socket_directory.cache_clear()


def test_what_does_nothing_with_pandas_warns_of_none(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark.testing.utils", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leave_out_warning_of_pandas()
        spark.range(1).mapInArrow(lambda batches: batches, "id BIGINT").withColumn("one", F.lit(1))
    assert "pyspark.testing.utils" in sys.modules


# Spark Connect -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "used",
    [lambda: empty_frame(OfConnect(), T.StructType()), lambda: analyzed(OfConnect()), lambda: executed(OfConnect())],  # type: ignore[arg-type]
    ids=["session", "analyzed", "executed"],
)
def test_spark_connect_is_refused(used: Callable[[], object]) -> None:
    with pytest.raises(ProgramError, match=r"this is a session of Spark Connect; .* needs a Spark driver in its own"):
        used()


class OfConnect:
    """A session or DataFrame of Spark Connect, which have no handles of the driver's objects."""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked from it on Linux alone")
def test_workers_are_forked_from_a_daemon_of_ours(spark: SparkSession) -> None:
    def parent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"command": [Path(f"/proc/{os.getppid()}/cmdline").read_text()]})

    def ask() -> list[str]:
        found = spark.range(0, 1, 1, 1).mapInArrow(parent, "command STRING").head()
        assert found is not None
        return str(found.command).rstrip("\0").split("\0")[1:]

    with workers_forked_from(spark, "kohort.spark.worker_daemon"):
        assert ask() == ["-m", "kohort.spark.worker_daemon", WORKER_MODULE]
    assert ask() == ["-m", "pyspark.daemon", WORKER_MODULE]


def test_a_daemon_that_the_user_has_set_stays(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.python.daemon.module", "mine")
    try:
        with workers_forked_from(spark, "kohort.spark.worker_daemon"):
            assert conf.get("spark.python.daemon.module") == "mine"
        assert conf.get("spark.python.daemon.module") == "mine"
    finally:
        conf.remove("spark.python.daemon.module")


def test_settings_stay_until_the_last_who_wants_them_ends(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    first, second = (workers_forked_from(spark, "kohort.spark.worker_daemon") for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert conf.get("spark.python.daemon.module") == "kohort.spark.worker_daemon"
    second.__exit__(None, None, None)
    assert not conf.contains("spark.python.daemon.module")


def test_workers_of_another_python_have_sparks_own_daemon(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/usr/bin/env")
    with workers_forked_from(spark, "kohort.spark.worker_daemon"):
        assert not spark.sparkContext._jsc.sc().conf().contains("spark.python.daemon.module")
