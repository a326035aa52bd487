"""Tables as values: filtered, changed, written; streams that become tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp
from kohort.spark.testing import TestDriver

NOWHERE = "127.0.0.1:1"
ITEM = "id BIGINT, kind STRING, price DOUBLE"
Driver = Callable[..., TestDriver]


def made(**settings: Any) -> StreamsApp:
    return StreamsApp("tables", bootstrap_servers=NOWHERE, **settings)


def item(id: int, kind: str | None, price: float | None) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "kind": kind, "price": price}


def written(driver: TestDriver, topic: str) -> list[tuple[str, Any]]:
    """All that a topic has: keys and values."""
    records = driver.records(topic).sort_by([("timestamp", "ascending"), ("offset", "ascending")])
    pairs: Iterable[tuple[bytes, bytes | None]] = zip(
        records["key"].to_pylist(), records["value"].to_pylist(), strict=True
    )
    return [(key.decode(), None if value is None else json.loads(value)) for key, value in pairs]


def test_a_table_is_filtered_and_written_with_tombstones(kohort_test_driver: Driver) -> None:
    app = made()
    items = app.table("items", schema=ITEM, key="id")
    cheap = items.where("price < 10").with_columns(cents="cast(price * 100 AS INT)").select("id AS item", "cents")
    cheap.to("cheap")
    cheap.as_stream(deleted="gone").to("seen", key="item")
    cheap.as_stream().to("left")
    driver = kohort_test_driver(app)
    driver.pipe("items", [item(1, "a", 5.0), item(2, "a", 50.0), item(1, "a", 7.5)])
    driver.pipe("items", [item(1, "a", 20.0), item(2, "b", 1.0)])
    driver.delete("items", {"id": 2})
    assert written(driver, "cheap") == [
        ("1", {"item": 1, "cents": 500}), ("2", None), ("1", {"item": 1, "cents": 750}),
        ("1", None), ("2", {"item": 2, "cents": 100}), ("2", None),
    ]  # fmt: skip
    assert [(row["item"], row.get("cents"), row["gone"]) for row in driver.output("seen")] == [
        (1, 500, False), (2, None, True), (1, 750, False), (1, None, True), (2, 100, False), (2, None, True),
    ]  # fmt: skip
    assert driver.output("left") == [{"item": 1, "cents": 500}, {"item": 1, "cents": 750}, {"item": 2, "cents": 100}]


def test_a_key_of_several_columns_is_in_tombstones_too(kohort_test_driver: Driver) -> None:
    app = made()
    app.table("items", schema=ITEM, key=("kind", "id")).where(F.col("price") > 1).to("out")
    driver = kohort_test_driver(app)
    driver.pipe("items", [item(1, "a", 5.0), item(2, "b", 0.5)])
    driver.delete("items", {"kind": "a", "id": 1})
    assert [(json.loads(key), value) for key, value in written(driver, "out")] == [
        ({"kind": "a", "id": 1}, item(1, "a", 5.0)),
        ({"kind": "b", "id": 2}, None),
        ({"kind": "a", "id": 1}, None),
    ]


def test_a_stream_becomes_a_table_of_last_rows(kohort_test_driver: Driver) -> None:
    app = made()
    items = app.stream("items", schema=ITEM)
    items.to_table("kind", deleted="price is null").where("id > 0").select("kind", "price", "1 AS one").to("kinds")
    driver = kohort_test_driver(app)
    driver.pipe("items", [item(1, "a", 5.0), item(2, "b", 6.0), item(3, None, 7.0)])
    driver.pipe("items", [item(4, "b", None), item(-1, "a", 5.0), item(5, "a", 8.0)])
    assert sorted(written(driver, "kinds"), key=lambda pair: pair[0]) == [
        ("a", {"kind": "a", "price": 5.0, "one": 1}), ("a", None), ("a", {"kind": "a", "price": 8.0, "one": 1}),
        ("b", {"kind": "b", "price": 6.0, "one": 1}), ("b", None),
    ]  # fmt: skip


def test_what_cannot_be_done_to_a_table_is_said(spark: SparkSession) -> None:
    def refused(program: Callable[[StreamsApp], object], why: str) -> None:
        app = made()
        with pytest.raises(ProgramError, match=why):
            program(app)
            app.compile(spark)

    def table(app: StreamsApp) -> Any:
        return app.table("items", schema=f"{ITEM}, tags ARRAY<STRING>", key="id")

    def joined(app: StreamsApp) -> None:
        items = table(app)
        items.where("price > 1").to("out")
        app.stream("orders", schema="id BIGINT", key="id").join(items).to("joined")

    refused(lambda app: table(app).select("price").to("out"), r"select\('price'\) doesn't pass id through unchanged")
    refused(lambda app: table(app).with_columns(id="id + 1").to("out"), "told apart by the columns of its key")
    refused(lambda app: table(app).select("id", "explode(tags)").to("out"), "one row for each key")
    refused(joined, "'items' is used as a value as well")
    refused(lambda app: app.global_table("items", schema=ITEM, key="id").where("true"), "read the topic by app.table")
    refused(lambda app: app.stream("s", schema=ITEM).to_table("price").to("out"), "whose values make no keys")
    refused(lambda app: table(app).where(1), "where takes texts and Columns")


def test_a_table_that_is_used_as_a_value_stands_in_the_description(spark: SparkSession) -> None:
    app = made()
    app.table("items", schema=ITEM, key="id").where("price > 1").to("out")
    assert app.describe(spark) == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [items])\n"
        "      --> KSTREAM-TRANSFORM-0000000001\n"
        "    Processor: KSTREAM-TRANSFORM-0000000001 (stores: [])\n"
        "      --> KSTREAM-SINK-0000000002\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "    Sink: KSTREAM-SINK-0000000002 (topic: out)\n"
        "      <-- KSTREAM-TRANSFORM-0000000001\n"
        "\n"
    )
