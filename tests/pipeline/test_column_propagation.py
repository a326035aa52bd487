"""Columns of Kohort's own go with rows, whatever a transform selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.program.column_propagation import transformed

Rows = list[tuple[object, ...]]


def four(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict(
            {"k": ["a", "b", "a", "c"], "v": [1, 2, 3, 4], "_partition": pa.array([0, 0, 1, 1], pa.int32()),
             "_offset": [10, 11, 20, 21]}
        )  # fmt: skip


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    return spark.range(0, 1, 1, 1).mapInArrow(four, "k STRING, v BIGINT, _partition INT, _offset BIGINT")


@pytest.fixture(scope="module")
def names(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("a", "Anna"), ("b", "Ben")], "k STRING, name STRING")


def propagated(stream: DataFrame, function: Callable[[DataFrame], DataFrame]) -> tuple[list[str], Rows]:
    made = transformed(stream, function, ["_offset"])
    return made.columns, sorted((tuple(row) for row in made.collect()), key=repr)


@pytest.mark.parametrize(
    ("function", "columns", "expected"),
    [
        (lambda df: df, "k v _partition _offset", [("a", 1, 0, 10), ("a", 3, 1, 20), ("b", 2, 0, 11), ("c", 4, 1, 21)]),
        (lambda df: df.select("v"), "v _partition _offset", [(1, 0, 10), (2, 0, 11), (3, 1, 20), (4, 1, 21)]),
        (lambda df: df.drop("_partition", "v").where("k = 'a'"), "k _partition _offset", [("a", 0, 10), ("a", 1, 20)]),
        (lambda df: df.toDF("x", "y", "_partition").select("y").where("y > 3"), "y _partition _offset", [(4, 1, 21)]),
        (
            lambda df: df.where("v < 2").select(F.explode(F.array("v", F.lit(7))).alias("e")).select("e"),
            "e _partition _offset",
            [(1, 0, 10), (7, 0, 10)],
        ),
        (
            lambda df: df.sparkSession.sql(
                "SELECT v, e FROM {df}, LATERAL explode(array(5)) AS t(e) WHERE k = 'a'", df=df
            ),
            "v e _partition _offset",
            [(1, 5, 0, 10), (3, 5, 1, 20)],
        ),
        (
            lambda df: df.observe("seen", F.count("v").alias("n")).where("v = 4").select("k"),
            "k _partition _offset",
            [("c", 1, 21)],
        ),
        (lambda df: df.select(F.lit(1).alias("n")).distinct(), "n", [(1,)]),
        (
            lambda df: df.select("v").where("v < 2").union(df.select((F.col("v") * 10).alias("v")).where("v > 30")),
            "v _partition _offset",
            [(1, 0, 10), (40, 1, 21)],
        ),
        (
            lambda df: df.where("v = 1").union(df.where("v = 1")).select(F.col("k").alias("x")).where("x = 'a'"),
            "x _partition _offset",
            [("a", 0, 10), ("a", 0, 10)],
        ),
    ],
    ids=["identity", "select", "drop", "toDF", "explode", "SQL", "observe", "distinct", "union", "union of the same"],
)
def test_columns_go_with_rows(
    stream: DataFrame, function: Callable[[DataFrame], DataFrame], columns: str, expected: Rows
) -> None:
    assert propagated(stream, function) == (columns.split(), expected)


def test_columns_go_through_joins_and_functions(stream: DataFrame, names: DataFrame) -> None:
    plus = F.udf(lambda value: value + 1, "long")

    def joined(df: DataFrame) -> DataFrame:
        return df.select("k", plus("v").alias("w")).join(F.broadcast(names), "k", "left").select("name", "w")

    assert propagated(stream, joined) == (
        ["name", "w", "_partition", "_offset"],
        [("Anna", 2, 0, 10), ("Anna", 4, 1, 20), ("Ben", 3, 0, 11), (None, 5, 1, 21)],
    )
    assert propagated(stream, lambda df: names.join(df.select("k"), "k", "leftsemi")) == (
        ["k", "name"],
        [("a", "Anna"), ("b", "Ben")],
    )


def test_what_cannot_be_looked_into_is_left_as_it_is(stream: DataFrame, names: DataFrame) -> None:
    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"columns": [",".join(batch.schema.names)] * batch.num_rows})

    expected: Rows = [("k",)] * 4
    assert propagated(stream, lambda df: df.select("k").mapInArrow(seen, "columns STRING")) == (["columns"], expected)
    columns, rows = propagated(stream, lambda df: df.select("k").union(names.select("k")))
    assert (columns, len(rows)) == (["k"], 6)
