"""Tables as values: filtered, changed, written; streams that become tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import (
    Aggregation,
    ProgramError,
    StreamsApp,
    aggregation,
    approx_distinct,
    avg,
    collect,
    count,
    count_distinct,
    count_if,
    first,
    max_,
    min_,
    sum_,
    variance,
    window,
)
from kohort.spark.program.format_digests import store_formats
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


def test_a_table_of_exploded_rows_is_changed_where_they_are(kohort_test_driver: Driver) -> None:
    app = made()
    carts = app.stream("carts", schema="id BIGINT, tags ARRAY<STRING>", key="id")
    tags = carts.select("id", "explode(tags) AS tag").to_table("id", "tag")
    tags.with_columns(upper="upper(tag)").to("tags")
    driver = kohort_test_driver(app)
    driver.pipe("carts", [{"id": 1, "tags": ["a", "b"]}])
    assert [row["upper"] for row in driver.output("tags")] == ["A", "B"]


def test_what_leaves_a_group_is_subtracted(kohort_test_driver: Driver) -> None:
    """Beside Python's sums over the table, whatever came and went; with ints, so that sums are exact."""
    app = made()
    app.table("items", schema="id BIGINT, kind STRING, price BIGINT", key="id").group_by("kind").aggregate(
        "kinds", n=count(), of=count("price"), odd=count_if("price % 2 = 1"), total=sum_("price"), mean=avg("price"),
        spread=variance("price", population=True), least=min_("price"), most=max_("price"),
        different=count_distinct("price"), dear=sum_("price", where="price > 5"),
    ).to("kinds", key="kind")  # fmt: skip
    driver = kohort_test_driver(app, partitions=2)
    drawn = Random(7)
    table: dict[int, dict[str, Any]] = {}
    groups: dict[str, Any] = {}
    for _ in range(2):
        for _ in range(6):
            ids = drawn.sample(range(8), 3)
            if drawn.random() < 0.3:
                driver.delete("items", *({"id": each} for each in ids), step=False)
                for each in ids:
                    table.pop(each, None)
            else:
                rows = [item(each, drawn.choice("abc"), drawn.choice([None, 1, 2, 4, 7, 9])) for each in ids]
                driver.pipe("items", rows, step=False)
                table |= {row["id"]: row for row in rows}
        driver.step()
        groups |= dict(written(driver, "kinds"))
        expected = {}
        for kind in {row["kind"] for row in table.values()}:
            prices = [row["price"] for row in table.values() if row["kind"] == kind]
            expected[kind] = results(kind, len(prices), [each for each in prices if each is not None])
        assert {kind: group for kind, group in groups.items() if group is not None} == expected
    driver.delete("items", *({"id": each} for each in range(8)))
    assert set(dict(written(driver, "kinds")).values()) == {None}
    assert dict(driver.store("kinds")) == dict(driver.store("kinds-rows")) == {}


def results(kind: str, n: int, prices: list[int]) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "n": n, "of": len(prices), "odd": sum(each % 2 for each in prices)}
    found |= dict.fromkeys(("total", "mean", "spread", "least", "most"))
    if prices:
        mean = sum(prices) / len(prices)
        spread = sum((each - mean) ** 2 for each in prices) / len(prices)
        found |= {"total": sum(prices), "mean": pytest.approx(mean), "spread": pytest.approx(spread, abs=1e-9)}
        found |= {"least": min(prices), "most": max(prices)}
    return {**found, "different": len(set(prices)), "dear": sum(each for each in prices if each > 5) or None}


@pytest.mark.parametrize("keep", ["first", "last"])
def test_what_leaves_gives_way_to_what_was_beyond_the_limit(kohort_test_driver: Driver, keep: Any) -> None:
    """Beside Python's sort of the table's rows, whatever came and went; several have the same price and name."""
    app = made()
    named = app.table("named", schema="id BIGINT, kind STRING, name STRING, price INT", key="id")
    named.group_by("kind").aggregate(
        "kinds", names=collect("name", 3, by="price", keep=keep), few=collect("id", 2, by="price", where="name = 'x'"),
    ).to("kinds", key="kind")  # fmt: skip
    driver = kohort_test_driver(app, partitions=2)
    drawn = Random(11)
    table: dict[int, dict[str, Any]] = {}
    groups: dict[str, Any] = {}

    def ends(kind: str) -> dict[str, Any]:
        rows = [row for row in table.values() if row["kind"] == kind and row["price"] is not None]
        names = sorted((row["price"], row["name"]) for row in rows if row["name"] is not None)
        few = sorted((row["price"], row["id"]) for row in rows if row["name"] == "x")
        bounded = names[:3] if keep == "first" else names[-3:]
        return {"kind": kind, "names": [name for _, name in bounded], "few": [each for _, each in few[:2]]}

    for _ in range(6):
        for _ in range(3):
            ids = drawn.sample(range(9), 3)
            if drawn.random() < 0.3:
                driver.delete("named", *({"id": each} for each in ids), step=False)
                for each in ids:
                    table.pop(each, None)
            else:
                rows = [
                    {"id": each, "kind": drawn.choice("ab"), "name": drawn.choice(["x", "y", None]),
                     "price": drawn.choice([None, 1, 2])}
                    for each in ids
                ]  # fmt: skip
                driver.pipe("named", rows, step=False)
                table |= {row["id"]: row for row in rows}
        driver.step()
        groups |= dict(written(driver, "kinds"))
        expected = {kind: ends(kind) for kind in {row["kind"] for row in table.values()}}
        assert {kind: group for kind, group in groups.items() if group is not None} == expected


def bag() -> Aggregation:
    """The prices that are there, sorted: what no group's inverse makes, so what leaves has to be there before."""
    return aggregation(
        update=lambda: F.collect_list("price"),
        merge=lambda some: F.flatten(F.collect_list(some)),
        subtract=lambda some, left: F.aggregate(
            left, some,
            lambda rest, one: F.concat(
                F.slice(rest, F.lit(1), F.array_position(rest, one).cast("int") - 1),
                F.slice(rest, F.array_position(rest, one).cast("int") + 1, F.size(rest)),
            ),
        ),
        finish=F.sort_array,
    )  # fmt: skip


def test_own_aggregations_say_how_what_leaves_is_subtracted(kohort_test_driver: Driver) -> None:
    """In place, and through a topic, where rows leave that came from another partition."""
    app = made()
    items = app.table("items", schema="id BIGINT, kind STRING, price BIGINT", key="id")
    squares = aggregation(
        update=lambda: F.struct(F.sum(F.col("price") * F.col("price")).alias("sum"), F.count("price").alias("n")),
        merge=lambda s: F.struct(F.sum(s["sum"]).alias("sum"), F.sum(s["n"]).alias("n")),
        subtract=lambda s, left: F.struct(
            (F.coalesce(s["sum"], F.lit(0)) - F.coalesce(left["sum"], F.lit(0))).alias("sum"),
            (s["n"] - left["n"]).alias("n"),
        ),
        finish=lambda s: F.when(s["n"] > 0, s["sum"]),
    )
    items.group_by("kind").aggregate("kinds", n=count(), prices=bag(), squares=squares).to("kinds", key="kind")
    items.group_by("id").aggregate("ids", prices=bag(), squares=squares).to("ids", key="id")
    driver = kohort_test_driver(app, partitions=2)
    drawn = Random(5)
    table: dict[int, dict[str, Any]] = {}
    groups: dict[str, Any] = {}
    ids: dict[str, Any] = {}
    for epoch in range(6):
        for _ in range(4 if epoch > 1 else 1):
            some = drawn.sample(range(8), 3)
            if epoch < 2:  # at first rows that come and none that leave, then those of one group alone
                rows = [item(each + 3 * epoch, "ab"[each % 2 or epoch], 2) for each in range(3)]
                driver.pipe("items", rows, step=False)
                table |= {row["id"]: row for row in rows}
            elif drawn.random() < 0.3:
                driver.delete("items", *({"id": each} for each in some), step=False)
                for each in some:
                    table.pop(each, None)
            else:
                rows = [item(each, drawn.choice("ab"), drawn.choice([None, 1, 2, 4])) for each in some]
                driver.pipe("items", rows, step=False)
                table |= {row["id"]: row for row in rows}
        driver.step()
        groups |= dict(written(driver, "kinds"))
        ids |= dict(written(driver, "ids"))
        expected = {}
        for kind in {row["kind"] for row in table.values()}:
            of = [row["price"] for row in table.values() if row["kind"] == kind]
            prices = sorted(each for each in of if each is not None)
            total = sum(each * each for each in prices) if prices else None
            expected[kind] = {"kind": kind, "n": len(of), "prices": prices, "squares": total}
        assert {kind: group for kind, group in groups.items() if group is not None} == expected
        assert {key: (group["prices"], group["squares"]) for key, group in ids.items() if group is not None} == {
            str(each): ([], None) if row["price"] is None else ([row["price"]], row["price"] ** 2)
            for each, row in table.items()
        }


def test_aggregates_are_tables_whose_groups_leave_what_they_were_in(kohort_test_driver: Driver) -> None:
    """The mean of each kind's greatest prices, as of Nexmark's fourth query: nothing waits until it is closed."""
    app = made()
    items = app.stream("items", schema=ITEM, key="id")
    highest = items.group_by("id", "kind").aggregate("highest", price=max_("price")).as_table()
    means = highest.group_by("kind").aggregate("means", n=count(), mean=avg("price"))
    means.to("means", key="kind")
    means.as_table().where("mean > 10").to("dear")
    driver = kohort_test_driver(app)
    driver.pipe("items", [item(1, "a", 5.0), item(2, "a", 7.0), item(3, "b", 30.0)])
    assert sorted(driver.output("means"), key=str) == [
        {"kind": "a", "n": 2, "mean": 6.0}, {"kind": "b", "n": 1, "mean": 30.0}
    ]  # fmt: skip
    driver.pipe("items", [item(1, "a", 25.0), item(2, "a", 6.0)])
    assert driver.output("means") == [{"kind": "a", "n": 2, "mean": 16.0}]
    assert dict(written(driver, "dear")) == {
        "a": {"kind": "a", "n": 2, "mean": 16.0}, "b": {"kind": "b", "n": 1, "mean": 30.0}
    }  # fmt: skip


def test_changes_of_a_table_have_the_row_before_and_the_row_after(kohort_test_driver: Driver) -> None:
    app = made()
    items = app.table("items", schema=ITEM, key="id")
    items.changes().to("changes", key="id")
    kinds = items.group_by("kind").aggregate("kinds", n=count())
    kinds.as_table().changes(name="more").where("change = 'delete'").select("kind", "before.n AS n").to("gone")
    driver = kohort_test_driver(app)
    driver.pipe("items", [item(1, "a", 5.0), item(2, "b", 6.0), item(1, "a", 5.0)])
    driver.pipe("items", [item(1, "b", 5.0)])
    driver.delete("items", {"id": 2}, {"id": 2})
    one, other, moved = ({"kind": kind, "price": price} for kind, price in (("a", 5.0), ("b", 6.0), ("b", 5.0)))
    assert driver.output("changes") == [
        {"id": 1, "change": "insert", "before": None, "after": one},
        {"id": 2, "change": "insert", "before": None, "after": other},
        {"id": 1, "change": "update", "before": one, "after": moved},
        {"id": 2, "change": "delete", "before": other, "after": None},
    ]
    assert driver.output("gone") == [{"kind": "a", "n": 1}]


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
    for kept in (first("price", by="id"), approx_distinct("price")):
        refused(lambda app, kept=kept: table(app).group_by("id").aggregate("x", r=kept).to("out"), "r=….*as_stream")
    own = aggregation(update=lambda: F.max("price"), merge=F.max)
    refused(lambda app: table(app).group_by("id").aggregate("x", r=own).to("out"), r"r=….*subtract=lambda state, left")
    odd = aggregation(update=lambda: F.max("price"), merge=F.max, subtract=lambda state, left: F.array(state))
    refused(lambda app: table(app).group_by("id").aggregate("x", r=odd).to("out"), "subtract makes array<double> of")
    with pytest.raises(ProgramError, match=r"subtract=….*a function of two Columns"):
        aggregation(update=lambda: F.max("price"), merge=F.max, subtract=1)  # type: ignore[arg-type]
    refused(lambda app: table(app).group_by(window("at", "1 hour")), "grouped by columns: make one of the time")
    refused(lambda app: table(app).where(1), "where takes texts and Columns")


def test_a_column_of_a_tables_aggregate_cannot_begin_later(spark: SparkSession) -> None:
    def keys(**columns: Aggregation) -> Any:
        app = made()
        app.table("items", schema=ITEM, key="id").group_by("kind").aggregate("kinds", **columns).to("out")
        found = [store_formats(each).values() for each in app.compile(spark).subtopologies]
        (kinds,) = (each["kinds"] for formats in found for each in formats if "kinds" in each)
        return kinds.keys

    assert keys(n=count()) == keys(n=count()) != keys(n=count(), total=sum_("price"))


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
