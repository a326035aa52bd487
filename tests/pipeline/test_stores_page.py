"""docs/stores.md says what stores and changelogs hold: the program there is run, and writes the records there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kohort.spark
from kohort.spark import StreamsApp
from kohort.spark.program.compiled import Program
from kohort.spark.queries.store_infos import inner_stores
from kohort.spark.testing import TestDriver

PAGE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
STORE = re.compile(r"^    (\S+):$")
RECORD = re.compile(r"^      (\S.*) → (.*)$")


def shown() -> dict[str, list[tuple[str, str]]]:
    """The page's examples: by topic or store, keys and values in the order of the keys."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in PAGE.splitlines():
        if head := STORE.match(line):
            name = head[1]
            found[name] = []
        elif name and (record := RECORD.match(line)):
            found[name].append((record[1], record[2]))
        elif line.strip():
            name = ""
    return found


def written(driver: TestDriver, topic: str) -> list[tuple[str, str]]:
    """All records of a topic, in order of keys."""
    return sorted((row["key"].decode(), row["value"].decode()) for row in driver.records(topic).to_pylist())


def left(driver: TestDriver, store: str) -> list[tuple[str, str]]:
    """The last value of each key in a store's changelog, but of those that were deleted."""
    records = driver.records(f"shop-{store}-changelog").to_pylist()
    last = {record["key"]: record["value"] for record in records}
    return sorted((key.decode(), value.decode()) for key, value in last.items() if value is not None)


@contextlib.contextmanager
def run(spark: SparkSession) -> Iterator[tuple[TestDriver, Program]]:
    """The page's program in a driver, with its records, and what it is compiled to."""
    programs = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    scope: dict[str, Any] = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__}
    (rows,) = (each for each in programs if each.startswith("driver."))
    for program in programs:
        if program is not rows:
            exec(compile(program, "docs/stores.md", "exec"), scope)
    app: StreamsApp = scope["app"]
    compiled = app.compile(spark)
    with TestDriver(app, spark, now=datetime(2026, 1, 1, 4, tzinfo=UTC)) as driver:
        exec(compile(rows, "docs/stores.md", "exec"), scope | {"driver": driver})
        yield driver, compiled


@pytest.mark.long
def test_the_page_shows_every_store_as_it_is_written(spark: SparkSession) -> None:
    examples = shown()
    with run(spark) as (driver, program):
        stores = [store.name for each in program.subtopologies for store in each.stores]
        found = {name: left(driver, name) for name in stores}
        topics = {name: written(driver, name) for name in examples if name.endswith("-repartition")}
    assert examples == found | topics
    assert len(topics) == 2
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    told = {(tail, line.endswith("| yes |")) for line in lines for tail in re.findall(r"\}(-[a-z-]+)`", line)}
    inner = inner_stores(program)
    assert told == {(tail, name in inner) for name in stores for tail, _ in told if name.endswith(tail)}
    assert all(any(name.endswith(tail) for tail, own in told if own) for name in inner)
