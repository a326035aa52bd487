"""A function that keeps a total for each key, in Kohort: `python -m benchmarks.processors.kohort KEYS EPOCHS`."""

from __future__ import annotations

import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.processors.rows import COLUMNS, FIRST, epoch, told
from kohort.spark import StreamsApp, value_state
from kohort.spark.testing import TestDriver


def totals(rows: pa.Table, state: Any) -> pa.Table:
    """Each key's total so far."""
    new = rows.group_by("key").aggregate([("n", "sum")]).rename_columns(["key", "n"])
    before = state["totals"].get().rename_columns(["key", "before"])
    both = new.join(before, "key", join_type="left outer")
    total = pc.add(both["n"], pc.fill_null(both["before"], 0))
    made = pa.table({"key": both["key"], "total": total})
    state["totals"].put(made)
    return made


def main(keys: int, epochs: int) -> None:
    """Measure, with topics in memory: a broker would take the same from both."""
    app = StreamsApp("totals", bootstrap_servers="127.0.0.1:1")
    grouped = app.stream("rows", schema=COLUMNS, key="key").group_by("key")
    states = {"totals": value_state("total BIGINT")}
    grouped.process("totals", totals, output="key STRING, total BIGINT", states=states).to("out", key="key")
    took = []
    with TestDriver(app) as driver:
        for number in range(FIRST + epochs):
            driver.pipe("rows", epoch(keys, number), step=False)
            began = time.perf_counter()
            driver.step()
            took.append(time.perf_counter() - began)
        found = {row["key"]: row["total"] for row in driver.output("out")}
    told(took[FIRST:], found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
