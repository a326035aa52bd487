"""Functions that keep state, in the test driver: what they forget, and give, and when they are called."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp, count, list_state, map_state, value_state, window
from kohort.spark.testing import TestDriver

VISIT = "user STRING, page STRING, at TIMESTAMP"


def app_of(name: str) -> StreamsApp:
    return StreamsApp(name, bootstrap_servers="127.0.0.1:1")


def visit(user: str, page: str, at: str) -> dict[str, Any]:
    return {"user": user, "page": page, "at": f"2013-01-01T{at}:00Z"}


def remembered(rows: pa.Table, state: Any) -> pa.Table:
    last = {row["user"]: row["page"] for row in state["last"].get().to_pylist()}
    pages: dict[str, list[str]] = {}
    for row in state["pages"].get().to_pylist():
        pages.setdefault(row["user"], []).append(row["page"])
    seen = {row["user"]: row["page"] for row in state["seen"].entries().to_pylist()}
    users = state.groups["user"].to_pylist()
    state["last"].put(rows)
    state["pages"].append(rows)
    state["seen"].put(rows)
    columns = {"last": last.get, "pages": lambda user: ",".join(pages.get(user, [])), "seen": seen.get}
    return pa.table({"user": users, **{name: pa.array(map(of, users), pa.string()) for name, of in columns.items()}})


def test_state_is_forgotten_a_while_after_it_was_written(spark: SparkSession) -> None:
    app = app_of("remembering")
    visits = app.stream("visits", schema=VISIT, key="user", event_time="at")
    states = {
        "last": value_state("page STRING", ttl="1 hour"),
        "pages": list_state("page STRING", ttl="1 hour"),
        "seen": map_state("page STRING", "at TIMESTAMP", ttl="1 hour"),
    }
    output = "user STRING, last STRING, pages STRING, seen STRING"
    visits.group_by("user").process("memory", remembered, output=output, states=states).to("out")
    with TestDriver(app, spark) as driver:
        found = []
        for at, page in (("00:00", "a"), ("00:30", "b"), ("01:00", "c"), ("03:00", "d")):
            driver.pipe("visits", [visit("ann", page, at)])
            found += [tuple(row.values())[1:] for row in driver.output("out")]
        assert found == [(None, "", None), ("a", "a", "a"), ("b", "b", "b"), (None, "", None)]
        for state in states:
            assert len(driver.store(f"memory-{state}")) == len(driver.store(f"memory-{state}-ttl")) == 1


def sorted_out(rows: pa.Table, state: Any) -> dict[str, pa.Table]:
    """New users in one output, in the other in how many calls a user was; in both which call of the function it is."""
    call = uuid4().hex
    before = {row["user"]: row["calls"] for row in state["calls"].get().to_pylist()}
    users = state.groups["user"].to_pylist()
    calls = pa.array([before.get(user, 0) + 1 for user in users], pa.int64())
    state["calls"].put(pa.table({"user": users, "calls": calls}))
    new = [row for row in rows.to_pylist() if row["user"] not in before]
    given = {"calls": pa.table({"user": users, "n": calls, "call": [call] * len(users)})}
    fresh = pa.Table.from_pylist(new, rows.schema).append_column("call", pa.array([call] * len(new), pa.string()))
    return {**given, "new": fresh} if new else given


def test_a_function_gives_several_streams(spark: SparkSession) -> None:
    app = app_of("sorting")
    visits = app.stream("visits", schema=VISIT, key="user", event_time="at")
    outputs = {
        "new": "user STRING, at TIMESTAMP, call STRING", "calls": "user STRING, n BIGINT, call STRING",
        "unused": "n INT",
    }  # fmt: skip
    states = {"calls": value_state("calls BIGINT")}
    streams = visits.group_by("user").process("sort", sorted_out, outputs=outputs, states=states)
    assert list(streams) == ["new", "calls", "unused"]
    streams["new"].to("new", key="user")
    streams["calls"].to("calls")
    by_hour = (
        streams["new"].transform(lambda df: df.withColumn("all", F.lit(1))).group_by("all", window("at", "1 hour"))
    )
    by_hour.aggregate("new-by-hour", n=count()).to("new-by-hour")
    with TestDriver(app, spark) as driver:
        driver.pipe("visits", [visit("ann", "a", "00:00"), visit("bob", "a", "00:05")])
        new, calls = driver.output("new"), driver.output("calls")
        assert [(row["user"], row["at"]) for row in new] == [
            ("ann", "2013-01-01T00:00:00.000Z"), ("bob", "2013-01-01T00:05:00.000Z"),
        ]  # fmt: skip
        assert len({row["call"] for row in (*new, *calls)}) == 1, "the function ran once, whatever goes on from it"
        assert driver.output("new-by-hour") == [{"window": "2013-01-01T00:00:00.000Z", "all": 1, "n": 2}]
        driver.pipe("visits", [visit("ann", "b", "00:10")])
        assert driver.output("new") == [] and [row["n"] for row in driver.output("calls")] == [2]


def reminded(rows: pa.Table, state: Any) -> pa.Table:
    """Each visit sets a reminder a minute later; a list has all that were given."""
    if rows.num_rows:
        later = pa.scalar(state.now + 60_000, pa.timestamp("ms", "UTC"))
        state.clock_timers.set(pa.table({"user": rows["user"], "at": pa.repeat(later, rows.num_rows)}))
    due = state.clock_timers.due
    state["given"].append(due)
    before = Counter(row["user"] for row in state["given"].get().to_pylist())
    given = [
        {"user": row["user"], "late": round(state.now / 1000 - row["at"].timestamp()), "before": before[row["user"]]}
        for row in due.to_pylist()
    ]
    return pa.Table.from_pylist(given, pa.schema([("user", "string"), ("late", "int64"), ("before", "int64")]))


@pytest.mark.parametrize("moved", [False, True], ids=["where they are read", "through a topic"])
def test_timers_by_the_clock_call_idle_tasks(spark: SparkSession, *, moved: bool) -> None:
    app = app_of("reminding")
    visits = app.stream("visits", schema=VISIT, key=None if moved else "user", event_time="at")
    reminders = visits.group_by("user").process(
        "remind", reminded, output="user STRING, late BIGINT, before BIGINT", timers="processing",
        states={"given": list_state("at TIMESTAMP", ttl="1 hour", ttl_by="processing")},
    )  # fmt: skip
    reminders.to("out", key="user")
    with TestDriver(app, spark, partitions=3) as driver:
        driver.pipe("visits", [visit(user, "a", "00:00") for user in ("ann", "bob", "cid")])
        driver.advance(59)
        assert driver.output("out") == []
        driver.advance(2)
        found = driver.output("out")
        assert sorted((row["user"], row["before"]) for row in found) == [("ann", 0), ("bob", 0), ("cid", 0)]
        assert {row["late"] for row in found} == {1}
        driver.pipe("visits", [visit("ann", "b", "00:00")])
        driver.advance(120)
        assert driver.output("out") == [{"user": "ann", "late": 60, "before": 1}]
        assert len(driver.store("remind-clock-timers")) == 0 and len(driver.store("remind-given")) == 4
        driver.pipe("visits", [visit("ann", "c", "00:00")])
        driver.advance(3600)
        assert driver.output("out") == [{"user": "ann", "late": 3540, "before": 0}]


def test_outputs_that_can_not_be(spark: SparkSession) -> None:
    grouped = app_of("wrong").stream("visits", schema=VISIT).group_by("user")
    with pytest.raises(ProgramError, match="needs the columns that the function gives"):
        grouped.process("neither", sorted_out)  # type: ignore[call-overload]
    with pytest.raises(ProgramError, match="has no output"):
        grouped.process("none", sorted_out, outputs={})
