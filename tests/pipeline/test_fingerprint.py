"""State is gone on with, or refused, by what the program says, whatever Spark prints of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp, aggregation, collect, count, last, max_, sum_, window
from kohort.spark.program.aggregates import identity
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.program.format_digests import store_formats
from kohort.spark.program.store_formats import same_column
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, distance INT, at TIMESTAMP"


def test_the_fingerprint_goes_by_what_is_kept(spark: SparkSession) -> None:
    def fingerprint(size: str = "1 hour", column: str = "distance", topic: str = "out", limit: int = 3) -> Fingerprint:
        app = StreamsApp("app")
        flights = app.stream("flights", schema=FLIGHT, event_time="at")
        flights.group_by("origin", window("at", size)).aggregate("n", n=max_(column), l=collect("at", limit)).to(topic)
        return app.compile(spark).fingerprint

    assert fingerprint() == fingerprint(topic="elsewhere")
    assert len({fingerprint(), fingerprint(size="2 hours"), fingerprint(column="dep_delay")}) == 3
    assert len({fingerprint(limit=limit) for limit in (3, 4)}) == 2


def test_formats_have_digests_of_expressions_by_column(spark: SparkSession) -> None:
    def n(times: int) -> str:
        app = StreamsApp("app")
        flights = app.stream("flights", schema=FLIGHT, event_time="at", key="origin")
        flights.group_by("origin").aggregate("n", n=sum_(F.col("distance") * times), m=max_("distance"))
        found = {name: each for part in app.compile(spark).subtopologies for name, each in store_formats(part).items()}
        (columns,) = (each["n"].columns for each in found.values() if "n" in each)
        assert ":" not in columns["m"]
        return columns["n"]

    assert n(2) == n(2) != n(3)
    assert same_column(n(2), n(3))


def test_expressions_have_digests_beside_the_fingerprint(spark: SparkSession) -> None:
    def fingerprint(aggregate: Callable[[], Any]) -> Fingerprint:
        app = StreamsApp("app")
        flights = app.stream("flights", schema=FLIGHT, event_time="at")
        flights.group_by("origin").aggregate("n", n=aggregate())
        return app.compile(spark).fingerprint

    def best(
        field: str = "distance", step: int = 1, wrap: Callable[[Any], Any] = F.collect_list, result: str = "d"
    ) -> Any:
        def merge(states: Any) -> Any:
            added = F.transform(wrap(states), lambda one: F.struct((one["d"] + step).alias("d"), one["o"].alias("o")))
            return F.aggregate(added, F.max(states), lambda left, right: F.when(left > right, left).otherwise(right))

        update = lambda: F.max(F.struct(F.col(field).cast("int").alias("d"), F.col("origin").alias("o")))  # noqa: E731
        return aggregation(update=update, merge=merge, finish=lambda found: found[result])

    programs: list[Callable[[], Any]] = [
        best,
        lambda: best(field="dep_delay"),
        lambda: best(step=2),
        lambda: best(wrap=F.collect_set),
        lambda: sum_(F.col("distance") * 2),
        lambda: sum_(F.col("distance") * 3),
        lambda: count(F.when(F.col("origin") == "carrier", 1)),
        lambda: count(F.when(F.col("origin") == F.col("carrier"), 1)),
        lambda: count(F.filter(F.array("distance"), lambda each: each > 1)),
        lambda: count(F.filter(F.array("distance"), lambda each: each > 2)),
        lambda: count(F.when(F.col("origin").cast("binary") == b"JFK", 1)),
        lambda: max_(F.udf(len, "int")(F.col("origin"))),
        lambda: max_(
            F.udf(len, "int")(F.transform(F.array("distance"), lambda each: each + 1)),
        ),
        lambda: last("distance", by=F.col("at")),
        lambda: last("distance", by=F.col("at") - F.expr("interval 1 hour")),
    ]
    found = [fingerprint(each).expressions for each in programs]
    assert [fingerprint(each).expressions for each in programs] == found
    assert len(set(found)) == len(found)
    assert len({fingerprint(each) for each in programs[:4]}) == 1, "of the same types and version"
    assert fingerprint(lambda: best(result="o")).expressions == found[0], "finish makes results, which aren't kept"
    assert fingerprint(lambda: sum_("distance")).expressions == ()


def test_state_is_gone_on_with_though_spark_prints_it_otherwise(
    spark: SparkSession,
    kohort_fresh_broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "out")

    def app(version: str = "1") -> StreamsApp:
        made = StreamsApp("printed", bootstrap_servers=servers, state_dir=tmp_path)
        readings = made.stream("readings", schema="sensor STRING, n BIGINT", key="sensor")
        total = aggregation(update=lambda: F.sum("n"), merge=F.sum, version=version)
        readings.group_by("sensor").aggregate("totals", own=total, twice=sum_(F.col("n") * 2)).to("out")
        return made

    def send(*numbers: int) -> int:
        sending = producer(servers)
        for n in numbers:
            sending.produce("readings", json.dumps({"sensor": "a", "n": n}), key="a")
        sending.flush()
        return len(numbers)

    def told() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "kohort.spark.program.cluster_checks"]

    run_in_steps(app(), spark, [partial(send, 1, 2)])
    assert told() == []
    as_now = identity.expression_text
    monkeypatch.setattr(identity, "expression_text", lambda column: f"<{as_now(column)}>")
    run_in_steps(app(), spark, [partial(send, 10)])
    (warning,) = told()
    assert "the expressions of totals.own, totals.twice aren't those" in warning
    run_in_steps(app(), spark, [partial(send, 100)])
    assert told() == [warning], "what is committed by then has the new text"
    values = [json.loads(each.value()) for each in read(servers, "out")]
    assert {"sensor": "a", "own": 113, "twice": 226} in values
    with pytest.raises(ProgramError, match=r"another program has committed under the application_id 'printed'"):
        app("2").run(spark, progress=False)
