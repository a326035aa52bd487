"""Records' keys in formats: read into columns, and written of them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from kohort.protocol.records.partitioner import partition_of
from kohort.spark import Drop, ProgramError, StreamsApp, count
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker
from tests.spark.formats.fake_registry import fake_registry

from .applications import create_topics, producer, read, run_in_steps

RECORD: dict[str, Any] = {
    "type": "record",
    "name": "Id",
    "fields": [{"name": "shop", "type": "string"}, {"name": "number", "type": "long"}],
}


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def with_id(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + data


def test_keys_become_columns_and_columns_keys(spark: SparkSession) -> None:
    app = StreamsApp("shops", on_error=Drop())
    number = app.stream("numbers", schema="n INT", key_format="avro", key_schema="id BIGINT")
    number.to("out", key="id", key_format="avro")
    number.to("objects", key=("id", "n"), key_format="json")
    both = app.stream("objects-in", schema="n INT", key_format="json", key_schema="shop STRING, number BIGINT")
    both.where("shop IS NOT NULL").to(
        "records", key=("shop", "number"), key_format="avro", key_schema=json.dumps(RECORD)
    )
    raw = app.stream("bytes", schema="n INT", key_format="raw")
    raw.select("n").to("lines", key="n", key_format="string")
    with TestDriver(app, spark) as driver:
        driver.pipe("numbers", [{"n": 1}, {"n": 2}, {"n": 3}], key=[{"id": 300}, avro("long", -1), b"\xff"])
        driver.pipe("numbers", [{"n": 4}])
        assert driver.dropped == {"unreadable": 1}
        assert driver.records("out")["key"].to_pylist() == [avro("long", 300), avro("long", -1), None]
        assert [row["id"] for row in driver.output("out")[:2]] == [300, -1]
        keys = [json.loads(each) for each in driver.records("objects")["key"].to_pylist()]
        assert [key["n"] for key in keys] == [1, 2, 4]
        driver.pipe("objects-in", [{"n": 5}, {"n": 6}], key=[{"shop": "eu", "number": 7}, b'{"number": 8}'])
        assert driver.records("records")["key"].to_pylist() == [avro(RECORD, {"shop": "eu", "number": 7})]
        driver.pipe("bytes", [{"n": 6}], key=b"\xff")
        assert driver.records("lines")["key"].to_pylist() == [b"6"]


def test_text_keys_say_what_a_stream_is_keyed_by(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    orders = app.stream("orders", schema="n INT", key_format="string", key_schema="customer STRING")
    orders.group_by("customer").aggregate("counts", n=count()).to("counts", key="customer")
    assert len(app.compile(spark).subtopologies) == 1
    with TestDriver(app, spark, partitions={"orders": 3}) as driver:
        driver.pipe("orders", [{"n": 1}] * 3, key=["ann", "bob", "ann"])
        assert {row["customer"]: row["n"] for row in driver.output("counts")} == {"ann": 2, "bob": 1}


def test_other_keys_move_by_their_columns(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    orders = app.stream("orders", schema="n INT", key_format="avro", key_schema="id BIGINT")
    orders.group_by("id").aggregate("counts", n=count()).to("counts", key="id")
    assert app.compile(spark).internal_topics[0] == "shops-counts-repartition"
    with TestDriver(app, spark, partitions={"orders": 3}) as driver:
        driver.pipe("orders", [{"n": 1}] * 3, key=[{"id": 1}, {"id": 2}, {"id": 1}])
        assert {row["id"]: row["n"] for row in driver.output("counts")} == {1: 2, 2: 1}


def test_registered_keys_lie_where_their_bytes_lead(spark: SparkSession) -> None:
    with fake_registry() as server:
        number, record = server.add("numbers-key", '"long"'), server.add("records-key", RECORD)
        app = StreamsApp("shops", schema_registry=server.registry())
        numbers = app.stream("numbers", schema="n INT", key_format="avro")
        numbers.to("out", key="key", key_format="avro")
        records = app.stream("records", schema="n INT", key_format="avro")
        records.to("both", key=("shop", "number"), key_format="avro")
        with TestDriver(app, spark, partitions={"out": 5}) as driver:
            driver.pipe("numbers", [{"n": 1}, {"n": 2}], key=[with_id(number, avro("long", each)) for each in (7, 8)])
            found = driver.records("out")
            made = json.loads(server.subjects["out-key"][-1]["schema"])
            out = server.subjects["out-key"][-1]["id"]
            assert made in ("long", {"type": "long"})
            wanted = {with_id(out, avro("long", each)) for each in (7, 8)}
            assert set(found["key"].to_pylist()) == wanted
            places = zip(found["key"].to_pylist(), found["partition"].to_pylist(), strict=True)
            assert all(partition == partition_of(key, 5) for key, partition in places)
            driver.pipe("records", [{"n": 1}], key=with_id(record, avro(RECORD, {"shop": "eu", "number": 1})))
            made = json.loads(server.subjects["both-key"][-1]["schema"])
            (key,) = driver.records("both")["key"].to_pylist()
            assert fastavro.schemaless_reader(io.BytesIO(key[5:]), made, None) == {"shop": "eu", "number": 1}


KINDS: dict[str, tuple[str, Any, bytes]] = {
    "avro": ("AVRO", RECORD, avro(RECORD, {"shop": "eu", "number": 1})),
    "json_schema": (
        "JSON",
        {"type": "object", "required": ["shop", "number"],
         "properties": {"shop": {"type": "string"}, "number": {"type": "integer"}}},
        b'{"shop":"eu","number":1}',
    ),
    "protobuf": (
        "PROTOBUF",
        'syntax = "proto3"; message Id { string shop = 1; int64 number = 2; }',
        b"\0" + b"\x0a\x02eu" + b"\x10\1",  # the first message, then its fields
    ),
}  # fmt: skip
"""Of each format with schemas: the registry's name of it, a schema, and a key by that."""


@pytest.mark.parametrize("format", KINDS)
def test_keys_of_every_registered_format(spark: SparkSession, format: str) -> None:  # noqa: A002
    """Read into columns, written of them where their bytes lead, and a table's."""
    kind, schema, key = KINDS[format]
    with fake_registry() as server:
        server.add("others", '"int"')
        orders, items = (server.add(f"{topic}-key", schema, kind) for topic in ("orders", "items"))
        app = StreamsApp("shops", schema_registry=server.registry())
        stream = app.stream("orders", schema="n INT", key_format=format)
        stream.to("out", key=("shop", "number"), key_format=format)
        stream.group_by("shop").aggregate("shops", n=count())
        table = app.table("items", key=("shop", "number"), schema="kind STRING", key_format=format)
        table.group_by("kind").aggregate("kinds", n=count())
        with TestDriver(app, spark, partitions={"out": 5, "orders": 3}) as driver:
            driver.pipe("orders", [{"n": 1}, {"n": 2}], key=with_id(orders, key))
            made = server.subjects["out-key"][-1]
            assert made.get("schemaType", "AVRO") == kind
            out = driver.records("out")
            assert [each[:5] for each in out["key"].to_pylist()] == [with_id(made["id"], b"")] * 2
            assert [each[5:] for each in out["key"].to_pylist()] == [written_again(format, made["schema"], key)] * 2
            assert out["partition"].to_pylist() == [partition_of(out["key"][0].as_py(), 5)] * 2
            assert dict(driver.store("shops")) == {"eu": {"n": 2}}
            driver.pipe("items", [{"kind": "new"}], key=with_id(items, key))
            assert dict(driver.store("kinds")) == {"new": {"n": 1}}
            driver.pipe("items", [None], key=with_id(items, key))
            assert (dict(driver.store("kinds")), driver.dropped) == ({}, {})


def written_again(format: str, schema: str, key: bytes) -> bytes:  # noqa: A002
    """A key as it is written by the schema of its columns, which may be null."""
    if format != "avro":
        return key
    return avro(json.loads(schema), fastavro.schemaless_reader(io.BytesIO(key), RECORD, None))


def test_a_table_has_keys_in_a_format(spark: SparkSession) -> None:
    """Beside a dict: what is set and deleted, as a table, in a group, and for a stream that is joined."""
    app = StreamsApp("shops")
    items = app.table("items", key="id", schema="kind STRING, price INT", key_format="avro", key_schema="id BIGINT")
    items.where("price < 10").to("cheap")
    items.group_by("kind").aggregate("kinds", n=count()).to("kinds", key="kind")
    orders = app.stream("orders", schema="number INT, item BIGINT", key="number")
    orders.join(items, on={"item": "id"}, how="left").to("named", key="number")
    with TestDriver(app, spark, partitions={"items": 3, "orders": 2}) as driver:
        rows = {each: {"kind": "ab"[each % 2], "price": each} for each in range(8, 13)}
        driver.pipe("items", list(rows.values()), key=[{"id": each} for each in rows])
        driver.pipe("items", [None, None], key=[{"id": 9}, avro("long", 12)])
        driver.pipe("items", [{"kind": None, "price": None}, {"kind": "b", "price": 1}], key=[{"id": 8}, {"id": 10}])
        driver.pipe("items", [{"kind": "c", "price": 1}])  # without a key there is nothing to set
        records = driver.records("cheap")
        cheap = dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
        there = {key: json.loads(value) for key, value in cheap.items() if value is not None}
        assert there == {b"10": {"kind": "b", "price": 1, "id": 10}}
        kinds = {row.get("kind"): row.get("n") for row in driver.output("kinds") if "n" in row}
        assert (kinds["b"], kinds[None]) == (2, 1)
        assert dict(driver.store("kinds")).keys() == {"b", None}
        driver.pipe("orders", [{"number": each, "item": each} for each in range(8, 12)])
        assert sorted((row["number"], row["kind"], row["price"]) for row in driver.output("named")) == [
            (8, None, None), (9, None, None), (10, "b", 1), (11, "b", 11)
        ]  # fmt: skip


@pytest.mark.parametrize("format", ["string", "json"])
def test_records_without_a_value_delete_whatever_the_keys_are(spark: SparkSession, format: str) -> None:  # noqa: A002
    """Of a table in its groups, where nothing is left of what is deleted."""
    app = StreamsApp("shops")
    items = app.table("items", key="id", schema="kind STRING", key_format=format, key_schema="id STRING")
    items.group_by("kind").aggregate("kinds", n=count()).to("kinds", key="kind")
    ids = ["w", "x", "y", "z"]
    keys: list[Any] = ids if format == "string" else [{"id": each} for each in ids]
    with TestDriver(app, spark, partitions={"items": 3}) as driver:
        driver.pipe("items", [{"kind": each} for each in "aabb"], key=keys)
        assert {row["kind"]: row["n"] for row in driver.output("kinds")} == {"a": 2, "b": 2}
        driver.pipe("items", [None] * 3, key=keys[1:])
        assert dict(driver.store("kinds")) == {"a": {"n": 1}}
        assert driver.dropped == {}
        driver.pipe("items", [{"kind": "a"}, None])  # without a key there is nothing to set, nor to delete
        assert dict(driver.store("kinds")) == {"a": {"n": 1}}
        assert driver.dropped == {"no key": 2}


@pytest.mark.parametrize("format", ["string", "json"])
def test_a_streams_records_without_a_value_are_of_their_keys_task(spark: SparkSession, format: str) -> None:  # noqa: A002
    app = StreamsApp("shops")
    text = format == "string"
    events = app.stream(
        "events", schema="n INT", tombstones="keep", key_format=format, key=None if text else ("shop", "id"),
        key_schema="id STRING" if text else "shop STRING, id STRING",
    )  # fmt: skip
    group = ["id"] if text else ["shop", "id"]
    events.group_by(*group).aggregate("counts", rows=count(), values=count("n")).to("counts", key=group)
    assert len(app.compile(spark).subtopologies) == 1
    keys: list[Any] = ["x", "y"] if text else [{"shop": "eu", "id": each} for each in "xy"]
    with TestDriver(app, spark, partitions={"events": 3}) as driver:
        driver.pipe("events", [{"n": 1}, None], key=keys)
        driver.pipe("events", [None], key=keys[0])
        counts = {row["id"]: (row["rows"], row["values"]) for row in driver.output("counts")}
        assert (counts, driver.dropped) == ({"x": (2, 1), "y": (1, 0)}, {})


def test_a_tables_key_under_two_schemas_is_one(spark: SparkSession) -> None:
    with fake_registry() as server:
        ids = [server.add("rates-key", schema) for schema in ('"long"', {"type": "long", "doc": "the same"})]
        app = StreamsApp("shops", schema_registry=server.registry())
        rates = app.table("rates", key="key", schema="rate DOUBLE", key_format="avro")
        rates.group_by("key").aggregate("many", n=count()).to("out", key="key")
        with TestDriver(app, spark, partitions={"rates": 5}) as driver:
            for number in ids:
                driver.pipe("rates", [{"rate": number * 1.0}], key=with_id(number, avro("long", 7)))
            assert dict(driver.store("many")) == {7: {"n": 1}}
            driver.pipe("rates", [None], key=with_id(ids[0], avro("long", 7)))
            assert dict(driver.store("many")) == {}


MISTAKES: dict[str, tuple[Callable[[StreamsApp], Any], str]] = {
    "no format": (lambda app: app.stream("t", schema="n INT", key_schema="id INT"), "say in which format the keys are"),
    "csv": (lambda app: app.stream("t", schema="n INT", key_format="csv"), "keys aren't read as CSV"),
    "no columns": (
        lambda app: app.stream("t", schema="n INT", key_format="json").to("x"),
        "stream 't': key_format='json': say the columns of the keys, as key_schema=",
    ),
    "twice": (
        lambda app: app.stream("t", schema="n INT", key_format="json", key_schema="n INT").to("x"),
        "stream 't': the column 'n' is there twice",
    ),
    "keyed by bytes": (
        lambda app: app.stream("t", schema="n INT", key="n", key_format="avro", key_schema="id INT"),
        "with key_format='avro' they lie where the key's bytes lead to: leave key= out",
    ),
    "no key to write": (lambda app: app.stream("t", schema="n INT").to("x", key_format="avro"), "say key=, and any"),
    "a text of a number": (
        lambda app: app.stream("t", schema="n INT").to("x", key="n", key_format="raw"),
        "to('x'): key_format='raw':",
    ),
    "a table's other key": (
        lambda app: app.table("t", key="n", schema="n INT", key_format="avro", key_schema="id INT").to("x"),
        "table 't': key=('n',), but with key_format='avro' the records' keys have id",
    ),
    "a table for nothing": (
        lambda app: app.table("t", key="id", schema="n INT", key_format="avro", key_schema="id INT"),
        "table 't' goes nowhere: with key_format= no store has it",
    ),
    "a table's no format": (
        lambda app: app.table("t", key="id", schema="n INT", key_schema="id INT"),
        "table 't': say in which format the keys are",
    ),
    "no registry": (
        lambda app: app.stream("t", schema="n INT").to("x", key="n", key_format="protobuf"),
        "to('x'): key_format: format=\"protobuf\" needs a registry",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_a_key_is_said(spark: SparkSession, mistake: str) -> None:
    write, said = MISTAKES[mistake]
    app = StreamsApp("shops")
    with pytest.raises(ProgramError, match=re.escape(said)):
        write(app)
        app.compile(spark)


def test_a_client_of_others_writes_and_reads_such_keys(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "numbers", "out")
    sent = [avro("long", each) for each in (7, -8, 2**40)]

    def send() -> int:
        sending = producer(servers)
        for key in sent:
            sending.produce("numbers", b'{"n": 1}', key)
        sending.flush()
        return len(sent)

    app = StreamsApp("shops", bootstrap_servers=servers, state_dir=tmp_path)
    numbers = app.stream("numbers", schema="n INT", key_format="avro", key_schema="id BIGINT")
    numbers.with_columns(id="id + 1").to("out", key="id", key_format="avro")
    run_in_steps(app, spark, [send])
    found = {each.key(): each.partition() for each in read(servers, "out")}
    assert found == {key: partition_of(key, 2) for key in (avro("long", each) for each in (8, -7, 2**40 + 1))}
