"""Functions of the user's own in transforms: what Spark has for one value, for pandas and for Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import StreamsApp, count, sum_
from kohort.spark.errors import ApplicationError
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_in_steps, run_until

READING = "sensor STRING, n BIGINT"


def udf(df: DataFrame) -> DataFrame:
    return df.withColumn("n", F.udf(lambda n: n * n, "bigint")("n"))


def pandas_udf(df: DataFrame) -> DataFrame:
    def squared(n: pd.Series) -> pd.Series:
        return n * n

    return df.withColumn("n", F.pandas_udf(squared, "bigint")("n"))


def arrow_udf(df: DataFrame) -> DataFrame:
    def squared(n: pa.Array) -> pa.Array:
        return pc.multiply(n, n)

    return df.withColumn("n", F.arrow_udf(squared, "bigint")("n"))


def map_in_pandas(df: DataFrame) -> DataFrame:
    def squared(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(n=frame["n"] * frame["n"])

    return df.mapInPandas(squared, df.schema)


def map_in_arrow(df: DataFrame) -> DataFrame:
    def squared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.set_column(batch.schema.get_field_index("n"), "n", pc.multiply(batch["n"], batch["n"]))

    return df.mapInArrow(squared, df.schema)


OTHERS = [pytest.param(each, marks=pytest.mark.long) for each in (udf, arrow_udf, map_in_pandas, map_in_arrow)]


@pytest.mark.parametrize("function", [pandas_udf, *OTHERS])
def test_a_function_computes_every_row_of_every_epoch(
    spark: SparkSession,
    kohort_fresh_broker: Broker,
    tmp_path: Path,
    function: Callable[[DataFrame], DataFrame],
) -> None:
    """In two epochs, of which the second runs the first one's plan again where it may."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "squares")
    app = StreamsApp("squaring", bootstrap_servers=servers, state_dir=tmp_path)
    squares = app.stream("readings", schema=READING, key="sensor").transform(function)
    squares.group_by("sensor").aggregate("sums", n=count(), total=sum_("n")).to("squares")
    moved = len(app.compile(spark).subtopologies) > 1
    run_in_steps(app, spark, [partial(_send, servers, range(first, first + 5)) for first in (0, 5)], moved=moved)
    sums = {value.pop("sensor"): value for value in map(_value, read(servers, "squares"))}
    assert sums == {"a": {"n": 5, "total": 120}, "d": {"n": 5, "total": 165}}


@pytest.mark.long
def test_a_function_that_fails_stops_the_application(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Tried a few times, it is told what the function raised, and from which records on; nothing of them is written."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "squares")

    def but_four(n):  # type: ignore[no-untyped-def]  # Spark warns of hints that it can't place
        if n == 4:
            raise ValueError("four is too many")
        return n

    app = StreamsApp("failing", bootstrap_servers=servers, state_dir=tmp_path)
    readings = app.stream("readings", schema=READING, key="sensor")
    readings.transform(lambda df: df.withColumn("n", F.udf(but_four, "bigint")("n"))).to("squares")
    _send(servers, range(4, 9))
    told: list[str] = []
    heard = Heard()
    heard.failed = told.append  # type: ignore[method-assign]
    with pytest.raises(
        ApplicationError, match=r"subtopology 0 failed 3 times .*readings-0:0.*: ValueError: four is too"
    ):
        run_until(app, spark, heard, lambda: False)
    # An epoch of some of the records may have failed before.
    assert len(told) >= 4 and set(told[:-1]) == {"subtopology 0: ValueError: four is too many"}
    assert told[-1].startswith("the application stops: subtopology 0 failed 3 times")
    assert "a" not in {value["sensor"] for value in map(_value, read(servers, "squares"))}


def _send(servers: str, numbers: range) -> int:
    sending = producer(servers)
    for n in numbers:
        name = "ad"[n % 2]  # whose places these partitions are
        sending.produce("readings", json.dumps({"sensor": name, "n": n}), key=name, partition=n % 2)
    sending.flush()
    return len(numbers)


def _value(message: object) -> dict[str, object]:
    return json.loads(message.value())  # type: ignore[attr-defined, no-any-return]
