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
def run(spark: SparkSession) -> Iterator[tuple[TestDriver, list[str]]]:
    """The page's program in a driver, with its records, and the names of its stores."""
    programs = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    scope: dict[str, Any] = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__}
    (rows,) = (each for each in programs if each.startswith("driver."))
    for program in programs:
        if program is not rows:
            exec(compile(program, "docs/stores.md", "exec"), scope)
    app: StreamsApp = scope["app"]
    stores = [store.name for each in app.compile(spark).subtopologies for store in each.stores]
    with TestDriver(app, spark, now=datetime(2026, 1, 1, 4, tzinfo=UTC)) as driver:
        exec(compile(rows, "docs/stores.md", "exec"), scope | {"driver": driver})
        yield driver, stores


@pytest.mark.long
def test_the_page_shows_every_store_as_it_is_written(spark: SparkSession) -> None:
    examples = shown()
    with run(spark) as (driver, stores):
        found = {name: left(driver, name) for name in stores}
        topics = {name: written(driver, name) for name in examples if name.endswith("-repartition")}
    assert examples == found | topics
    assert len(topics) == 2
