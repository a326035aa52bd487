"""Functions that keep state, in the test driver: what they forget, and give, and when they are called."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, list_state, map_state, value_state
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
