"""Every program of the pages about streams applications runs, with a few rows, unless another test goes into it."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import kohort.spark
from kohort.spark import StreamsApp
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker
from tests.pages import GUIDE, Block, block, blocks
from tests.spark.formats.fake_registry import fake_registry

from .applications import create_topics, producer

TESTED_BY_MORE = {  # by the heading before it, in test_guide.py
    ("aggregates.md", "by_auction = bids.group_by"): 'program("aggregates.md", "Aggregates of aggregates"',
    ("aggregates.md", "spread = aggregation("): "spread = aggregation",
    ("joins.md", 'orders = app.stream("orders", schema="id BIGINT'): 'program("joins.md", "Joins as of a time"',
    ("joins.md", 'orders = app.stream("orders", schema="id STRING'): 'program("joins.md", "Joins of streams"',
    ("state.md", "best = bids.group_by"): 'program("state.md", "Rows that tie"',
    ("state.md", "from datetime import timedelta"): 'program("state.md", "Functions that keep state"',
    ("streams-and-tables.md", "items = app.table("): 'program("streams-and-tables.md", "Tables as values"',
}
AT = "2013-01-01T05:00:0{}Z".format
BIDS = (
    'bids = app.stream("bids", schema="auction INT, bidder INT, price INT, dateTime TIMESTAMP", event_time="dateTime")'
)
LATE = 'late = app.stream("flights", schema="origin STRING, dep_delay DOUBLE", key="origin")'
ORDERS = 'orders = app.table("orders", schema="id INT, customer INT, total INT", key="id")'


@dataclass
class Program:
    """What a page has said before, what is piped, and how many rows come of it.

    Attributes:
        before: code.
        after: more of it.
        rows: by the topic that they are piped to, in this order.
        key: of the records.
        others: topics that are there, too, with their partitions.
        out: how many rows come, by topic.
    """

    before: str = ""
    after: str = ""
    rows: dict[str, list[Any]] = field(default_factory=dict)
    key: dict[str, Any] | None = None
    others: dict[str, int] = field(default_factory=dict)
    out: dict[str, int] = field(default_factory=dict)


FLIGHT = {"carrier": "UA", "origin": "EWR", "dep_delay": 12, "time_hour": AT(0)}
PROGRAMS = {
    ("aggregates.md", "grouped.aggregate("): Program(
        f'{LATE}\ngrouped = late.group_by("origin")',
        rows={"flights": [{"origin": "JFK", "dep_delay": 2.0}]}, out={"delays-by-hour": 1},
    ),
    ("aggregates.md", "longest = aggregation("): Program(
        after='flown = app.stream("flown", schema="carrier STRING, distance INT, flight INT", key="carrier")\n'
        'flown.group_by("carrier").aggregate("longest", flight=longest).to("longest")',
        rows={"flown": [{"carrier": "UA", "distance": far, "flight": far} for far in (10, 30, 20)]}, out={"longest": 1},
    ),
    ("aggregates.md", "import pyarrow as pa"): Program(
        LATE, rows={"flights": [{"origin": "JFK", "dep_delay": float(each)} for each in (1, 2)]},
        out={"levels-by-origin": 1},
    ),
    ("aggregates.md", "from kohort.spark import cogroup"): Program(
        'orders = app.stream("orders", schema="customer INT, total INT", key="customer")\n'
        'paid = app.stream("paid", schema="customer INT, amount INT", key="customer")',
        rows={"orders": [{"customer": 1, "total": 2}], "paid": [{"customer": 1, "amount": 1}]}, out={"accounts": 2},
    ),
    ("aggregates.md", 'delays.to("by-origin"'): Program(
        'flights = app.stream("flights", schema="origin STRING, at TIMESTAMP", key="origin", event_time="at")\n'
        'grouped = flights.group_by("origin", window("at", "1 hour", retention="forever"))\n'
        'delays = grouped.aggregate("delays", n=count())',
        rows={"flights": [{"origin": "JFK", "at": AT(0)}]}, out={"by-origin": 1},
    ),
    ("aggregates.md", "parts = visits.with_columns"): Program(
        'visits = app.stream("visits", schema="page STRING, visitor STRING", key="page")',
        rows={"visits": [{"page": "/", "visitor": each} for each in "aba"]}, out={"visitors": 1},
    ),
    ("aggregates.md", 'by_origin.aggregate("delays", emit='): Program(
        f'{LATE}\nby_origin = late.group_by("origin")', rows={"flights": [{"origin": "JFK", "dep_delay": 2.0}]},
    ),
    ("changing-a-program.md", "print(app.plan_upgrade())"): Program('app.stream("in", schema="n INT").to("out")'),
    ("formats.md", "orders = app.stream("): Program(
        'ORDER = "item STRING"', rows={"orders": [{"item": "tea"}]}, key={"id": 1}, out={"checked": 1}
    ),
    ("formats.md", "registry = SchemaRegistry("): Program(
        after='flights.select("carrier").to("carriers", format="json")', out={"carriers": 0}
    ),
    ("formats.md", "bids = app.stream("): Program(
        after='bids.to("seen")',
        rows={"bids": [{"auction": 1, "price": 5, "dateTime": 1_356_998_400_000}]}, out={"seen": 1},
    ),
    ("guarantees.md", "def write(rows, batch_id):"): Program(
        LATE, rows={"flights": [{"origin": "JFK", "dep_delay": 2.0}]}
    ),
    ("joins.md", "named = bids.join("): Program(
        BIDS + '\nauctions = app.table("auctions", schema="id INT, seller INT, category INT", key="id")\n'
        'people = app.global_table("people", schema="id INT, name STRING, city STRING", key="id")',
        'named.to("named")',
        rows={
            "people": [{"id": 7, "name": "Ann", "city": "Rome"}], "auctions": [{"id": 1, "seller": 7, "category": 3}],
            "bids": [{"auction": 1, "bidder": 7, "price": 5, "dateTime": AT(0)}],
        },
        out={"named": 1},
    ),
    ("joins.md", 'people.join(addresses, how="left")'): Program(
        ORDERS + '\npeople = app.table("people", schema="id INT, name STRING", key="id")\n'
        'addresses = app.table("addresses", schema="id INT, city STRING", key="id")\n'
        'customers = app.table("customers", schema="id INT, name STRING", key="id")',
        rows={
            "people": [{"id": 1, "name": "Ann"}], "customers": [{"id": 7, "name": "Bob"}],
            "orders": [{"id": 1, "customer": 7, "total": 2}],
        },
        out={"people-with-addresses": 1, "orders-with-names": 1},
    ),
    ("pipeline.md", "from pyspark.sql import SparkSession"): Program(
        rows={"airlines": [{"carrier": "UA", "name": "United"}], "flights": [FLIGHT]}, out={"delays-by-hour": 1}
    ),
    ("state.md", "once = bids.dedupe("): Program(
        BIDS, rows={"bids": [{"auction": 1, "bidder": 7, "price": 5, "dateTime": AT(0)}] * 2},
        out={"last-bids": 1, "best-bids": 1, "best-of-hours": 1},
    ),
    ("state.md", "streams = readings.group_by("): Program(
        'readings = app.stream("readings", schema="sensor STRING, level INT", key="sensor")\n'
        'def sorted_out(rows, state):\n    return {"changes": rows.select(["sensor", "level"])}',
        rows={"readings": [{"sensor": "a", "level": 1}]}, out={"changes": 1, "alarms": 0},
    ),
    ("streams-and-tables.md", "orders = app.stream(["): Program(
        'ORDER, EVENT = "customer INT", "n INT"',
        'orders.to("all-orders")\nevents.to("all-events")',
        rows={"orders-eu": [{"customer": 1}], "orders-us": [{"customer": 2}]}, others={"events-1": 1},
        out={"all-orders": 2},
    ),
    ("streams-and-tables.md", "orders = eu.union("): Program(
        'eu = app.stream("eu", schema="id INT, customer INT, at TIMESTAMP")\n'
        'us = app.stream("us", schema="id INT, customer INT, at TIMESTAMP")',
        'orders.to("orders")',
        rows={each: [{"id": 1, "customer": 2, "at": AT(0)}] for each in ("eu", "us")}, out={"orders": 2},
    ),
    ("windows.md", "by_card = payments.group_by("): Program(
        'schema = "card STRING, amount INT, at TIMESTAMP"\n'
        'payments = app.stream("payments", schema=schema, key="card", event_time="at")',
        rows={"payments": [{"card": "a", "amount": 2, "at": AT(each)} for each in (0, 5)]}, out={"spent": 3},
    ),
    ("windows.md", "visits = clicks.group_by("): Program(
        'clicks = app.stream("clicks", schema="user STRING, page STRING, at TIMESTAMP", key="user", event_time="at")',
        rows={"clicks": [{"user": "ann", "page": "/", "at": f"2013-01-01T0{hour}:00:00Z"} for hour in (1, 2)]},
        out={"visits": 1},
    ),
}  # fmt: skip
BESIDE = {("dataframes.md", each) for each in ("delays = app.store(", "df = spark.read.format(", "stream = (")} | {
    ("running.md", "from kohort.spark.class_archive import jvm_options")
}


def found(key: tuple[str, str]) -> Block:
    page, first = key
    return block(f"docs/{page}", first)


class Database:
    """A sink that knows what it has, as one of the page is."""

    def __init__(self) -> None:
        self._known = sqlite3.connect(":memory:", check_same_thread=False)
        self._known.execute("CREATE TABLE batches (id TEXT PRIMARY KEY)")
        self.rows: list[Any] = []

    def transaction(self) -> contextlib.AbstractContextManager[object]:
        return self._known

    def insert(self, statement: str, *values: str) -> bool:
        return self._known.execute(statement.replace("%s", "?"), values).rowcount > 0

    def insert_all(self, _: str, rows: Any) -> None:
        self.rows += rows


def test_every_program_of_the_guide_is_run() -> None:
    """Those that another test goes into are what that test runs."""
    programs = [each for page in GUIDE for each in blocks(f"docs/{page}") if each.language == "python"]
    run = [found(key) for key in (*TESTED_BY_MORE, *PROGRAMS, *BESIDE)]
    assert [each.place for each in programs if each not in run] == []
    assert len(run) == len(set(run)) == len(programs)
    source = (Path(__file__).parent / "test_guide.py").read_text()
    for (page, first), said in TESTED_BY_MORE.items():
        assert said in source, said
        if heading := re.search(r'", "(.*)"', said):
            text = (Path(__file__).parents[2] / "docs" / page).read_text()
            block_after = re.search(rf"^#+ {heading[1]}\n.*?```python\n(.*?)```", text, re.DOTALL | re.MULTILINE)
            assert block_after is not None and block_after[1].startswith(first), said


@pytest.mark.parametrize("key", PROGRAMS, ids=lambda key: re.sub(r"\W+", " ", f"{key[0]} {key[1]}").strip())
def test_programs_run(key: tuple[str, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    program, database, written = PROGRAMS[key], Database(), found(key)
    monkeypatch.setattr(StreamsApp, "run", lambda *_: None)  # whoever runs it then is the driver
    # This asks a broker, as test_upgrades.py does.
    monkeypatch.setattr(StreamsApp, "plan_upgrade", lambda app: app.compile(spark))
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(fake_registry()) if key[1].startswith("registry") else None
        scope: dict[str, Any] = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__}
        schema = (
            '{"type":"record","name":"delay","fields":[{"name":"origin","type":"string"},{"name":"n","type":"long"}]}'
        )
        scope |= {"F": F, "pa": pa, "database": database, "PLAIN_AVRO_SCHEMA": schema, "app": StreamsApp("guide")}
        text = written.text
        if served is not None:
            text = text.replace("https://registry:8081", served.url)
            field = '{"name": "%s", "type": %s}'
            fields = [
                field % ("carrier", '"string"'),
                field % ("at", '{"type":"long","logicalType":"timestamp-millis"}'),
            ]
            served.add("flights-value", '{"type":"record","name":"f","fields":[' + ",".join(fields) + "]}")
        for part in (program.before, text, program.after):
            exec(compile(part, written.place, "exec"), scope)
        with TestDriver(scope["app"], spark, partitions=program.others) as driver:
            for topic, rows in program.rows.items():
                driver.pipe(topic, rows, key=program.key)
            assert {topic: len(driver.output(topic)) for topic in program.out} == program.out
    if "database" in text:
        assert [tuple(each) for each in database.rows] == [("JFK", 2.0)]


def test_topics_as_data_frames(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches, and as a stream that has read all that there is."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "copy")
    sending = producer(servers)
    sending.produce("flights", b"one", b"UA")
    sending.flush()
    scope: dict[str, Any] = {"spark": spark}
    try:
        for first in ("df = spark.read.format(", "stream = ("):
            written = found(("dataframes.md", first))
            text = written.text.replace("localhost:9092", servers).replace("/var/lib", str(tmp_path))
            text = text.replace(
                '.toTable(\n    "flights"\n)', f'.option("path", "{tmp_path}/flights").toTable("flights")'
            )
            exec(
                compile(text.replace("stream.writeStream", "query = stream.writeStream"), written.place, "exec"), scope
            )
        query = scope["query"]
        assert query.awaitTermination(120)
        assert spark.table("flights").count() == 1
        copy = spark.read.format("kohort").option("servers", servers).option("topic", "copy").load()
        assert [bytes(row["value"]) for row in copy.collect()] == [b"one"]
    finally:
        spark.sql("DROP TABLE IF EXISTS flights")


def test_a_store_as_a_data_frame(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    class Store:
        def read(self, session: SparkSession) -> Any:
            return session.createDataFrame([("JFK", 200, 1.0), ("EWR", 100, 2.0)], "origin STRING, n INT, mean DOUBLE")

    class App:
        def store(self, name: str) -> Store:
            assert name == "delays"
            return Store()

    exec(found(("dataframes.md", "delays = app.store(")).text, {"app": App(), "spark": spark})
    assert "JFK" in (shown := capsys.readouterr().out)
    assert "EWR" not in shown


def test_a_session_with_an_archive_of_classes(spark: SparkSession) -> None:
    scope: dict[str, Any] = {}
    exec(found(("running.md", "from kohort.spark.class_archive import jvm_options")).text, scope)
    assert "spark.driver.extraJavaOptions" in scope["builder"]._options
