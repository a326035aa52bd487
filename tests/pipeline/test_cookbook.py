"""The programs of docs/cookbook.md, as they stand there."""

from __future__ import annotations

import io
import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from typer.main import get_command

from kohort.cli.apps import app as apps
from kohort.spark import StreamsApp
from kohort.spark.testing import QueueDriver, TestDriver
from kohort.testing.broker import Broker
from tests.spark.formats.fake_registry import fake_registry

from .applications import create_topics, producer

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text()
Start = Callable[..., TestDriver]


def recipe(heading: str, **scope: Any) -> StreamsApp:
    """An application of the lines under a heading."""
    found = re.search(rf"^## {heading}\n\n```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    app = StreamsApp("shop", bootstrap_servers=scope.pop("servers", "localhost:9092"))
    exec(compile(found[1], f"cookbook.md, {heading}", "exec"), {"__name__": "cookbook", "app": app, **scope})
    return app


def at(minutes: float) -> datetime:
    return datetime.fromtimestamp(1_356_998_400 + 60 * minutes, UTC)  # 2013


def test_each_recipe_is_in_the_table_and_tested() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    linked = re.findall(r"^\| [^|]+ \| \[[^\]]*\]\(#([\w-]+)\)", PAGE, re.MULTILINE)
    assert [re.sub(r"[^\w-]", "", each.lower().replace(" ", "-")) for each in headings] == linked
    tested = re.findall(r'\brecipe\("(.*?)"', Path(__file__).read_text())
    commands = ["Change a program, or begin from nothing"]  # of which there is a test of their own
    assert sorted(tested + commands) == sorted(headings)


def test_count_by_hour(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Count by hour"))
    rows = [("a", "tea", 2.0, 1), ("b", "tea", 3.0, 50), ("c", "tea", 4.0, 61), ("d", "jam", 1.0, 61)]
    driver.pipe("orders", [{"id": i, "item": item, "amount": much, "at": at(when)} for i, item, much, when in rows])
    found = {(row["item"], row["window"][11:13]): (row["n"], row["total"]) for row in driver.output("sales-by-hour")}
    assert found == {("tea", "00"): (2, 5.0), ("tea", "01"): (1, 4.0), ("jam", "01"): (1, 1.0)}


def test_count_by_visit(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Count by visit"))
    driver.pipe("clicks", [{"user": "ann", "page": "/", "at": at(each)} for each in (0, 20, 45, 80, 200)])
    assert sorted((row["window"][11:16], row["pages"]) for row in driver.output("visits")) == [
        ("00:00", 3),
        ("01:20", 1),
    ]


def test_add_what_a_table_knows(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Add what a table knows"))
    driver.pipe("customers", [{"id": "ann", "name": "Ann", "city": "Rome"}])
    driver.pipe("items", [{"item": "tea", "category": "drinks"}])
    rows = [("1", "ann", "tea"), ("2", "bob", "tea"), ("3", "ann", "egg")]
    driver.pipe("orders", [{"id": i, "customer": who, "item": item, "amount": 1.0} for i, who, item in rows])
    found = [(row["id"], row["name"], row["category"]) for row in driver.output("orders-in-full")]
    assert sorted(found) == [("1", "Ann", "drinks"), ("2", None, "drinks")]


def test_add_what_was_valid_then(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Add what was valid then"))
    for price, minute in ((2.0, 0), (3.0, 20)):
        driver.pipe("prices", [{"item": "tea", "price": price}], at=at(minute))
    driver.pipe("orders", [{"id": str(each), "item": "tea", "n": 2, "at": at(each)} for each in (10, 30, 60)])
    assert [(row["id"], row["total"]) for row in driver.output("totals")] == [("10", 4.0), ("30", 6.0)]


def paid(driver: TestDriver) -> None:
    """An order that is paid in time, one too late, and time that goes on in both topics."""
    driver.pipe("orders", [{"id": each, "item": "tea", "at": at(0)} for each in ("1", "2")])
    driver.pipe("payments", [{"order": i, "paid": 2.5, "when": at(when)} for i, when in (("1", 30), ("2", 61))])
    driver.pipe("orders", [{"id": "9", "item": "tea", "at": at(300)}], step=False)
    driver.pipe("payments", [{"order": "0", "paid": 1.0, "when": at(300)}])


def test_bring_two_streams_together(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Bring two streams together"))
    paid(driver)
    assert [(row["id"], row["paid"]) for row in driver.output("paid-orders")] == [("1", 2.5)]


def test_hear_of_what_did_not_happen(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Hear of what didn't happen"))
    driver.pipe("orders", [{"id": "3", "item": "tea", "at": at(0)}])
    driver.pipe("payments", [{"order": "3", "when": at(20)}])  # a payment, though nobody knows of how much
    paid(driver)
    assert [row["id"] for row in driver.output("unpaid-orders")] == ["2"]


def test_do_something_later(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Do something later"))
    driver.pipe("orders", [{"id": "1", "at": at(0)}, {"id": "2", "at": at(60)}, {"id": "0"}])
    assert driver.output("reminders") == []
    driver.pipe("orders", [{"id": "3", "at": at(24 * 60 + 30)}])
    assert driver.output("reminders") == [{"id": "1", "at": "2013-01-02T00:00:00.000Z"}]


def test_have_each_record_once(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Have each record once"))
    driver.pipe("events", [{"id": each, "what": "x", "at": at(0)} for each in "aba"])
    assert [row["id"] for row in driver.output("events-once")] == ["a", "b"]


def test_keep_the_last_record_of_each_key(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Keep the last record of each key"))
    for level, minute in ((1, 10), (2, 20), (3, 15)):
        driver.pipe("readings", [{"sensor": "a", "level": level, "at": at(minute)}])
    assert [row["level"] for row in driver.output("levels")] == [1, 2]


def test_have_the_three_best(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Have the three best"))
    driver.pipe("scores", [{"game": "go", "player": f"p{each}", "score": each} for each in (5, 9, 7, 1)])
    assert [(row["rank"], row["score"]) for row in driver.output("best-scores")] == [(1, 9), (2, 7), (3, 5)]


def test_total_what_there_is_now(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Total what there is now"))
    driver.pipe("stock", [{"id": each, "warehouse": "north", "value": 2.0} for each in "ab"])
    driver.output("stock-by-warehouse")
    driver.pipe("stock", [{"id": "b", "warehouse": "south", "value": 3.0}])
    found = {row["warehouse"]: (row["n"], row["value"]) for row in driver.output("stock-by-warehouse")}
    assert found == {"north": (1, 2.0), "south": (1, 3.0)}


def test_write_rows_to_topics_by_a_column(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Write rows to topics by a column"))
    driver.pipe("orders", [{"id": each, "country": each, "amount": 1.0} for each in ("SE", "DE", "SE")])
    assert [len(driver.output(topic)) for topic in ("orders-de", "orders-se")] == [1, 2]


def test_read_several_topics_as_one(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Read several topics as one"))
    for country in ("de", "se"):
        driver.pipe(f"orders-{country}", [{"id": "1", "amount": 1.0}])
    assert [row["country"] for row in driver.output("all-orders")] == ["de", "se"]


def test_go_on_after_records_that_cannot_be_read(kohort_test_driver: Start) -> None:
    driver = kohort_test_driver(recipe("Go on after records that can't be read"))
    driver.pipe("orders", [b"{", {"id": "1", "amount": 200.0}])
    assert [row["id"] for row in driver.output("large-orders")] == ["1"]
    assert [row["value"] for row in driver.output("orders-dead")] == [b"{"]


def test_have_jobs_done(kohort_spark: SparkSession) -> None:
    with QueueDriver(recipe("Have jobs done"), kohort_spark) as driver:
        assert driver.pipe("mails", [{"to": each, "text": "hello"} for each in ("a@b", "b")]) == ["accept", "reject"]
        assert [row["to"] for row in driver.output("mails-checked")] == ["a@b"]
        assert len(driver.output("mails-dead")) == 1


def test_write_to_a_database(kohort_test_driver: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    driver = kohort_test_driver(recipe("Write to a database"))
    with closing(sqlite3.connect("orders.db")) as database:
        with database:  # the second batch came before
            database.execute("INSERT INTO batches VALUES ('orders-0:2-3')")
        driver.pipe("orders", [{"id": "1", "amount": 200.0}, {"id": "2", "amount": 20.0}])
        for each in "34":
            driver.pipe("orders", [{"id": each, "amount": 300.0}])
        ids = database.execute("SELECT id FROM batches ORDER BY id").fetchall()
        assert ids == [("orders-0:0-2",), ("orders-0:2-3",), ("orders-0:3-4",)]
        assert database.execute("SELECT id FROM orders ORDER BY id").fetchall() == [("1",), ("4",)]


def test_read_and_write_avro_with_a_schema_registry(kohort_test_driver: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "amount", "type": "double"}]
    schema = {"type": "record", "name": "order", "fields": fields}
    with fake_registry() as server:
        number = server.add("orders-value", schema)
        monkeypatch.setattr("kohort.spark.SchemaRegistry", lambda _: server.registry())
        driver = kohort_test_driver(recipe("Read and write Avro with a schema registry"))
        values = []
        for row in ({"id": "1", "amount": 100.0}, {"id": "2", "amount": 200.0}):
            out = io.BytesIO(b"\0" + number.to_bytes(4))
            out.seek(5)
            fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
            values.append(out.getvalue())
        driver.pipe("orders", values)
        (large,) = driver.records("large-orders").to_pylist()
        assert large["key"] == b"2"
        assert large["value"][:5] == b"\0" + server.subjects["large-orders-value"][0]["id"].to_bytes(4)


@pytest.mark.long  # a broker, and a job over its topic: tests/pipeline/test_store_frame.py has what is read
def test_look_at_results_in_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """What is committed is in the changelog, so nothing has to run."""
    with Broker() as broker:
        servers = broker.bootstrap_servers
        create_topics(servers, "orders", "shop-sold-changelog")
        sending = producer(servers)
        for item, n in (("jam", 2), ("tea", 7)):
            changed = {"n": n, "state": {"n": n}}
            sending.produce("shop-sold-changelog", json.dumps(changed), key=json.dumps({"item": item}))
        sending.flush()
        recipe("Look at results in Spark", servers=servers, spark=spark)
    assert re.findall(r"\w+", capsys.readouterr().out) == ["item", "n", "tea", "7", "jam", "2"]


def test_test_any_of_these(kohort_spark: SparkSession) -> None:
    recipe("Test any of these")


def test_commands_of_a_change_are_there() -> None:
    section = PAGE.partition("## Change a program, or begin from nothing\n")[2]
    lines = re.findall(r"^    kohort apps (.*?)(?:#|$)", section, re.MULTILINE)
    assert len(lines) == 4
    commands = get_command(apps)
    for line in lines:
        name, *options = shlex.split(line)
        commands.commands[name].make_context(name, options).close()  # type: ignore[attr-defined]
