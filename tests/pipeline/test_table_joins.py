"""Joins of tables with each other, and of streams with tables that are made of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, count, window
from kohort.spark.testing import TestDriver

from ..marks import long
from .test_tables import written

PERSON = "id BIGINT, name STRING"
CITY = "person BIGINT, city STRING"
Driver = Callable[..., TestDriver]


def made() -> StreamsApp:
    return StreamsApp("joined", bootstrap_servers="127.0.0.1:1")


def table_of(driver: TestDriver, topic: str) -> dict[str, Any]:
    """What a table's topic comes to."""
    return {key: value for key, value in dict(written(driver, topic)).items() if value is not None}


def test_tables_are_joined_by_their_keys_and_changes_of_either_show(kohort_test_driver: Driver) -> None:
    app = made()
    people = app.table("people", schema=PERSON, key="id")
    cities = app.table("cities", schema=CITY, key="person")
    people.join(cities.where("city <> 'Rome'")).to("both")
    people.join(cities, how="left", prefix="their_", name="of-people").to("people-out")
    people.where("name > 'b'").join(cities, how="outer", name="of-either").to("either")
    driver = kohort_test_driver(app)
    driver.pipe("people", [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
    driver.pipe("cities", [{"person": 1, "city": "Oslo"}, {"person": 3, "city": "Bern"}])
    assert written(driver, "both") == [("1", {"id": 1, "name": "ann", "city": "Oslo"})]
    assert table_of(driver, "people-out") == {
        "1": {"id": 1, "name": "ann", "their_city": "Oslo"}, "2": {"id": 2, "name": "bob", "their_city": None}
    }  # fmt: skip
    assert table_of(driver, "either") == {
        "1": {"id": 1, "name": None, "city": "Oslo"}, "2": {"id": 2, "name": "bob", "city": None},
        "3": {"id": 3, "name": None, "city": "Bern"},
    }  # fmt: skip
    driver.pipe("cities", [{"person": 1, "city": "Rome"}, {"person": 2, "city": "Kyiv"}])
    driver.delete("people", {"id": 2})
    driver.delete("cities", {"person": 3})
    assert table_of(driver, "both") == {}
    assert table_of(driver, "people-out") == {"1": {"id": 1, "name": "ann", "their_city": "Rome"}}
    assert table_of(driver, "either") == {
        "1": {"id": 1, "name": None, "city": "Rome"}, "2": {"id": 2, "name": None, "city": "Kyiv"}
    }  # fmt: skip


@pytest.mark.parametrize("how", [*long("inner"), "left"])
def test_rows_follow_the_table_that_they_refer_to(kohort_test_driver: Driver, how: Any) -> None:
    app = made()
    orders = app.table("orders", schema="number BIGINT, customer BIGINT, item STRING", key="number")
    people = app.table("people", schema=PERSON, key="id")
    orders.join(people, on={"customer": "id"}, how=how, columns={"name": "customer_name"}).to("out")
    driver = kohort_test_driver(app)

    def order(number: int, customer: int | None, item: str, name: str | None) -> dict[str, Any]:
        given = {"number": number, "customer": customer, "item": item}
        driver.pipe("orders", [given])
        return given | {"customer_name": name}

    first, second = order(1, 7, "tea", "ann"), order(2, 7, "jam", "ann")
    driver.pipe("people", [{"id": 7, "name": "ann"}, {"id": 8, "name": "bob"}])
    assert table_of(driver, "out") == {"1": first, "2": second}
    second = order(2, 8, "jam", "bob")
    driver.pipe("people", [{"id": 7, "name": "eve"}])
    assert table_of(driver, "out") == {"1": first | {"customer_name": "eve"}, "2": second}
    first = order(1, None, "tea", None)
    driver.delete("people", {"id": 8})
    missing = {"1": first, "2": second | {"customer_name": None}}
    assert table_of(driver, "out") == (missing if how == "left" else {})
    driver.delete("orders", {"number": 1})
    driver.delete("orders", {"number": 2})
    assert table_of(driver, "out") == {}


def test_a_stream_meets_a_filtered_table_as_it_is_when_a_row_comes(kohort_test_driver: Driver) -> None:
    app = made()
    people = app.table("people", schema=PERSON, key="id").where("name <> 'bob'")
    visits = app.stream("visits", schema="person BIGINT, at TIMESTAMP", event_time="at")
    joined = visits.join(people, on={"person": "id"}, how="left")
    joined.to("out")
    by_name = joined.group_by("name", window("at", "1 hour", grace="0 seconds"))
    by_name.aggregate("visits-by-name", n=count()).to("counted")
    driver = kohort_test_driver(app)
    driver.pipe("people", [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
    some = [{"person": number, "at": f"2013-01-01T0{number}:00:00Z"} for number in (1, 2)]
    driver.pipe("visits", some)
    driver.delete("people", {"id": 1})
    driver.pipe("visits", [{"person": 1, "at": "2013-01-01T02:30:00Z"}])
    assert [(row["person"], row.get("name")) for row in driver.output("out")] == [(1, "ann"), (2, None), (1, None)]
    # The table's records are of today, but don't close windows.
    assert [row["n"] for row in driver.output("counted")] == [1, 1, 2]


def test_what_cannot_be_joined_is_refused(spark: SparkSession) -> None:
    def refused(join: Callable[[StreamsApp], Any], match: str) -> None:
        app = made()
        with pytest.raises(ProgramError, match=match):
            join(app).to("out")
            app.compile(spark)

    def people(app: StreamsApp, schema: str = PERSON) -> Any:
        return app.table("people", schema=schema, key="id")

    def cities(app: StreamsApp) -> Any:
        return app.table("cities", schema="person BIGINT, name STRING", key="person")

    refused(lambda app: people(app).join(cities(app)), "both have the column 'name'. Say prefix=")
    refused(
        lambda app: people(app, "id STRING, n INT").join(cities(app)),
        "'id' is STRING, and 'person' of the table BIGINT",
    )
    refused(lambda app: people(app).join(cities(app), on={"id": "name"}), "is joined by its key, 'person'")
    refused(lambda app: people(app).join(people(made())), "is of another StreamsApp")
    refused(lambda app: people(app).join(cities(app), how="cross"), '"inner", "left" or "outer"')
    refused(
        lambda app: app.table("orders", schema="n INT, customer BIGINT", key="n").join(
            people(app), on={"customer": "id"}, how="outer"
        ),
        'how="outer" is for joins of keys',
    )
    stream = "make a table of the stream"
    refused(lambda app: people(app).join(app.stream("rows", schema="id BIGINT")), stream)
