"""Aggregates of sessions: what is written, stored and forgotten, beside Spark's own sessions over all rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp, collect, count, count_if, last, max_, session, sum_, unlimited
from kohort.spark.program.streams import Stream
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker

from .test_selections import run

CLICK = "user BIGINT, page STRING, price BIGINT, gap BIGINT, at TIMESTAMP"
START = datetime(2013, 1, 1, tzinfo=UTC)


def click(user: int, second: int, price: int = 1, **more: Any) -> dict[str, Any]:
    return {"user": user, "page": f"/{second}", "price": price, "at": START + timedelta(seconds=second), **more}


def application(program: Callable[[Stream], Any], key: str | None = "user") -> StreamsApp:
    app = StreamsApp("sessions", bootstrap_servers="127.0.0.1:1")
    program(app.stream("clicks", schema=CLICK, key=key, event_time="at"))
    return app


def at(second: int) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def written(driver: TestDriver) -> list[tuple[str, Any]]:
    """The records of `out`, as times of sessions and counts; None for those that have no value."""
    records = driver.output("out").records.to_pylist()
    pairs = [(json.loads(each["key"])["window"], each["value"]) for each in records]
    return sorted((start, None if value is None else json.loads(value)["n"]) for start, value in pairs)


def test_sessions_that_a_row_brings_together_are_one(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        sessions = clicks.group_by("user", session("at", "10 seconds", end="ended"))
        sessions.aggregate("sessions", n=count(), pages=collect("page", 10), spent=sum_("price")).to("out")

    with TestDriver(application(program), spark, partitions=2) as driver:
        driver.pipe("clicks", [click(1, 20, 5), click(2, 20), click(1, 40, 6)])
        assert written(driver) == [(at(20), 1), (at(20), 1), (at(40), 1)]
        driver.pipe("clicks", [click(1, 30, 7)])  # near both, by the gap exactly
        assert written(driver) == [(at(20), 3), (at(40), None)]
        driver.pipe("clicks", [click(1, 15, 8), click(2, 31)])
        assert written(driver) == [(at(15), 4), (at(20), None), (at(31), 1)]
        found = driver.store("sessions")
        assert sorted(found) == [(at(15), 1), (at(20), 2), (at(31), 2)]
        whole = found[at(15), 1]
        assert (whole["spent"], sorted(whole["pages"])) == (26, ["/15", "/20", "/30", "/40"])
        assert whole["ended"] == at(40)


def test_a_closed_session_is_written_once(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        sessions = clicks.group_by("user", session("at", "10 seconds", grace="5 seconds", retention="1 minute"))
        closed = sessions.aggregate("sessions", emit="close", n=count(), some=count_if("price > 1"))
        closed.to("out").as_stream().group_by("user").aggregate("longest", most=max_("n"))

    with TestDriver(application(program, key=None), spark) as driver:
        driver.pipe("clicks", [click(1, 0), click(1, 10, 2), click(1, 18)])
        assert written(driver) == []
        driver.pipe("clicks", [click(1, 33), click(1, 19), click(1, 60), click(1, 15), click(1, 61)])
        # 19 was in time for the first session, and 15 too late, since that was closed at 34.
        assert written(driver) == [(at(0), 4), (at(33), 1)]
        assert driver.late == 1
        assert [row["most"] for row in driver.store("longest").values()] == [4]
        driver.pipe("clicks", [click(2, 200)])
        assert written(driver) == [(at(60), 2)]
        driver.pipe("clicks", [click(2, 201)])
        assert [start for start, _ in driver.store("sessions")] == [at(200)]


def test_gaps_are_those_of_a_column(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        sessions = clicks.group_by("user", session("at", gap_column="gap"))
        sessions.aggregate("sessions", n=count(), final=last("page")).to("out")

    rows = [click(1, 0, gap=30_000), click(1, 29, gap=1), click(1, 31, gap=5), click(1, 50, gap=0), click(1, 60)]
    with TestDriver(application(program), spark) as driver:
        driver.pipe("clicks", rows)
        assert written(driver) == [(at(0), 2), (at(31), 1)]
        assert sum(driver.dropped.values()) == 2


def test_sessions_are_those_of_spark_whatever_the_epochs(spark: SparkSession) -> None:
    rows = [click(number * 7 % 5, number * 37 % 901, number) for number in range(300)]

    def program(clicks: Stream) -> None:
        sessions = clicks.group_by("user", session("at", "9 seconds", grace="1 hour", end="ended"))
        sessions.aggregate("sessions", n=count(), spent=sum_("price")).to("out")

    values = [(each["user"], each["price"], each["at"]) for each in rows]
    frame = spark.createDataFrame(values, "u LONG, p LONG, t TIMESTAMP")
    batch = frame.groupBy("u", F.session_window("t", "9 seconds").alias("w")).agg(F.count("*"), F.sum("p"))
    found = batch.select(F.unix_timestamp("w.start") - int(START.timestamp()), *batch.columns).collect()
    expected = {(at(row[0]), row[1]): (row[3], row[4]) for row in found}
    with TestDriver(application(program), spark, partitions=2) as driver:
        table: dict[Any, Any] = defaultdict(int)
        for start, size in ((0, 1), (1, 40), (41, 7), (48, 252)):
            driver.pipe("clicks", rows[start : start + size])
            for each in driver.output("out").records.to_pylist():
                key, value = json.loads(each["key"]), each["value"] and json.loads(each["value"])
                table[key["window"], key["user"]] = value and (value["n"], value["spent"])
        stored = {key: (row["n"], row["spent"]) for key, row in driver.store("sessions").items()}
    assert stored == expected
    assert {key: value for key, value in table.items() if value is not None} == expected


def test_sessions_go_on_after_a_restart(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    """Each epoch's instance has nothing but the changelogs of those before it."""
    found, heard = run(
        spark,
        kohort_fresh_broker.bootstrap_servers,
        tmp_path,
        lambda bids: (
            bids.group_by("bidder", session("at", "5 minutes", grace="1 minute"))
            .aggregate("visits", emit="close", n=count(), most=max_("price"))
            .to("out")
        ),
        [(1, "ann", 5, "01:00"), (1, "bob", 6, "02:00")],
        [(2, "ann", 9, "06:00"), (2, "ann", 7, "07:59")],
        [(3, "eve", 1, "08:01"), (3, "bob", 8, "01:59"), (3, "eve", 1, "14:01")],
        moved=True,
    )
    told = [[(row["window"][14:19], row["bidder"], row["n"], row["most"]) for row in rows] for rows in found]
    assert told == [[], [], [("01:00", "ann", 3, 9), ("02:00", "bob", 1, 6)]]
    assert [each.total("late") for each in heard] == [0, 0, 1]


def test_a_window_without_end_begins_at_its_start(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        clicks.group_by("user", unlimited("at", start=START + timedelta(seconds=10))).aggregate("since", n=count()).to(
            "out"
        )

    with TestDriver(application(program), spark) as driver:
        driver.pipe("clicks", [click(1, 9), click(1, 10), click(1, 100_000)])
        driver.pipe("clicks", [click(1, 11)])
        assert written(driver) == [(at(10), 2), (at(10), 3)]
        assert driver.dropped == {"no window": 1}


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (session("page", "1 minute"), "session\\('page'\\) needs a TIMESTAMP column"),
        (
            session("at", gap_column="page"),
            "a gap is a whole number of milliseconds or an INTERVAL DAY TO SECOND, but 'page' is STRING",
        ),
        (session("at", gap_column="none"), "there is no such column"),
    ],
)
def test_what_makes_no_sessions_is_refused(spark: SparkSession, by: Any, said: str) -> None:
    app = application(lambda clicks: clicks.group_by("user", by).aggregate("sessions", n=count()))
    with pytest.raises(ProgramError, match=said):
        app.compile(spark)


def test_what_finds_the_sessions_of_rows_has_a_name_of_its_own(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        clicks.group_by("user").process("visits-sessions", lambda rows, state: rows, output=CLICK)
        clicks.group_by("user", session("at", "1 minute")).aggregate("visits", n=count())

    with pytest.raises(ProgramError, match="called 'visits-sessions'"):
        application(program).compile(spark)


def test_sessions_are_described(spark: SparkSession) -> None:
    app = application(
        lambda clicks: clicks.group_by("user", session("at", "1 minute")).aggregate("visits", n=count()).to("out")
    )
    described = app.describe(spark)
    assert "KSTREAM-SESSIONS-0000000001 (stores: [visits-sessions, visits-due])" in described
    assert "KSTREAM-AGGREGATE-0000000002 (stores: [visits])" in described


def test_gaps_may_be_intervals(spark: SparkSession) -> None:
    def program(clicks: Stream) -> None:
        timed = clicks.with_columns(gap="make_dt_interval(0, 0, 0, gap / 1000)")
        timed.group_by("user", session("at", gap_column="gap")).aggregate("sessions", n=count()).to("out")

    with TestDriver(application(program), spark) as driver:
        rows = [click(1, 0, gap=10_500), click(1, 10, gap=1_500), click(1, 12, gap=5_000), click(1, 40, gap=-1)]
        driver.pipe("clicks", rows)
        assert written(driver) == [(at(0), 2), (at(12), 1)]
