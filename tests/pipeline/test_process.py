"""Functions of users that keep state, in running applications."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import StreamsApp, list_state, map_state, value_state
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

VISIT = "user STRING, page STRING, n INT, at TIMESTAMP"
OUTPUT = "user STRING, total BIGINT, visits ARRAY<STRING>, pages STRING, fired STRING"


def seen(rows: pa.Table, state: Any) -> pa.Table:
    """A total in a value, all pages in a list, how often each was there in a map, and an alarm 10 s later."""
    totals = dict(zip(*state["totals"].get().select(["user", "total"]).to_pydict().values(), strict=True))
    lists: dict[str, list[str]] = {}
    for row in state["log"].get().to_pylist():
        lists.setdefault(row["user"], []).append(row["page"])
    entries = state["pages"].entries().to_pylist()
    pages = {(row["user"], row["page"]): row["times"] for row in entries}
    for row in rows.to_pylist():
        user, page = row["user"], row["page"]
        totals[user] = totals.get(user, 0) + row["n"]
        lists.setdefault(user, []).append(page)
        pages[user, page] = pages.get((user, page), 0) + 1
    users = state.groups["user"].to_pylist()
    known = [user for user in users if user in totals]
    state["totals"].put(pa.table({"user": known, "total": pa.array([totals[user] for user in known], pa.int64())}))
    state["log"].append(rows.select(["user", "page"]))
    touched = sorted({(row["user"], row["page"]) for row in rows.to_pylist()})
    columns = [list(column) for column in zip(*touched, strict=True)] or [[], []]
    times = pa.array([pages[each] for each in touched], pa.int64())
    state["pages"].put(pa.table({"user": columns[0], "page": columns[1], "times": times}))
    later = pc.add(rows["at"], pa.scalar(10_000_000, pa.duration("us")))
    state.timers.set(pa.table({"user": rows["user"], "at": later}))
    fired: dict[str, list[str]] = {}
    for row in state.timers.due.to_pylist():
        fired.setdefault(row["user"], []).append(row["at"].strftime("%M:%S"))
    return pa.table(
        {
            "user": users,
            "total": pa.array([totals.get(user) for user in users], pa.int64()),
            "visits": pa.array([lists.get(user, []) for user in users], pa.list_(pa.string())),
            "pages": [" ".join(f"{p}{n}" for (u, p), n in sorted(pages.items()) if u == user) for user in users],
            "fired": [" ".join(fired.get(user, [])) for user in users],
        }
    )


def send(servers: str, rows: list[tuple[str, str, int, str]]) -> int:
    sending = producer(servers)
    for user, page, n, at in rows:
        row = {"user": user, "page": page, "n": n, "at": f"2013-01-01T00:{at}Z"}
        sending.produce("visits", json.dumps(row), key=user, partition=0)
    sending.flush()
    return len(rows)


def test_a_function_keeps_values_lists_maps_and_timers(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Epoch after epoch, over a restart without the state directory; through a topic, since they say no key."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "visits", "seen", partitions=1)
    steps: list[Callable[[], int]] = [
        partial(send, servers, [("ann", "a", 1, "00:00"), ("bob", "b", 2, "00:01"), ("ann", "c", 3, "00:02")]),
        partial(send, servers, [("ann", "a", 4, "00:05")]),
        partial(send, servers, [("cid", "a", 1, "00:11")]),
        partial(send, servers, [("bob", "b", 1, "00:30")]),
    ]
    found: list[list[tuple[Any, ...]]] = []

    def look() -> None:
        rows = [json.loads(each.value() or b"") for each in read(servers, "seen")]
        before = sum(map(len, found))
        found.append(sorted(tuple(row.values()) for row in rows[before:]))

    for number, some in enumerate([steps[:2], steps[2:]]):
        app = StreamsApp("processing", bootstrap_servers=servers, state_dir=tmp_path / str(number))
        visits = app.stream("visits", schema=VISIT, event_time="at")
        processed = visits.group_by("user").process(
            "sums", seen, output=OUTPUT, timers=True,
            states={
                "totals": value_state("total BIGINT"),
                "log": list_state("page STRING"),
                "pages": map_state("page STRING", "times BIGINT"),
            },
        )  # fmt: skip
        processed.transform(lambda df: df.where(F.col("user") != "nobody")).to("seen", key="user")
        run_in_steps(app, spark, some, look, moved=True)
    assert found == [
        [("ann", 4, ["a", "c"], "a1 c1", ""), ("bob", 2, ["b"], "b1", "")],
        [("ann", 8, ["a", "c", "a"], "a2 c1", "")],
        [
            ("ann", 8, ["a", "c", "a"], "a2 c1", "00:10"), ("bob", 2, ["b"], "b1", "00:11"),
            ("cid", 1, ["a"], "a1", ""),
        ],
        [
            ("ann", 8, ["a", "c", "a"], "a2 c1", "00:12 00:15"), ("bob", 3, ["b", "b"], "b2", ""),
            ("cid", 1, ["a"], "a1", "00:21"),
        ],
    ]  # fmt: skip
