"""Aggregates that are written in formats whose schemas a registry has, and as CSV."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kohort.spark import ProgramError, SchemaRegistry, StreamsApp, count, sum_, window
from kohort.spark.formats import decoder
from kohort.spark.formats.registry_formats import RegistryReading
from kohort.spark.program.registered_outputs import register_schemas
from kohort.spark.program.streams import Aggregated
from kohort.spark.testing import TestDriver
from tests.spark.formats.fake_registry import fake_registry

ITEM = "id BIGINT, kind STRING, price BIGINT"
KINDS = StructType([StructField("kind", StringType()), StructField("n", LongType()), StructField("total", LongType())])


def grouped(registry: SchemaRegistry | None) -> tuple[StreamsApp, Aggregated]:
    app = StreamsApp("grouped", schema_registry=registry)
    items = app.table("items", schema=ITEM, key="id")
    return app, items.group_by("kind").aggregate("kinds", n=count(), total=sum_("price"))


def pipe(driver: TestDriver) -> None:
    rows = [(1, "a", 5), (2, "a", 7), (3, "b", 1)]
    driver.pipe("items", [{"id": each, "kind": kind, "price": price} for each, kind, price in rows])
    driver.delete("items", {"id": 3}, {"id": 1})


def last(driver: TestDriver, topic: str) -> dict[bytes, bytes | None]:
    records = driver.records(topic)
    return dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))


@pytest.mark.parametrize(("format", "kind"), [("avro", "AVRO"), ("json_schema", "JSON"), ("protobuf", "PROTOBUF")])
def test_groups_are_written_by_registered_schemas(spark: SparkSession, format: str, kind: str) -> None:  # noqa: A002
    """Those that go leave a tombstone; the schema is registered before anything is read."""
    with fake_registry() as server:
        server.add("others", '"int"')
        app, kinds = grouped(server.registry())
        kinds.to("out", format=format, key="kind").to("named", format=format, subject="kinds")
        register_schemas(app.compile(spark))
        assert {"out-value", "kinds"} < set(server.subjects)
        made = server.subjects["out-value"][-1]
        assert made.get("schemaType", "AVRO") == kind
        with TestDriver(app, spark) as driver:
            pipe(driver)
            found = last(driver, "out")
            assert found.keys() == {b"a", b"b"} and found[b"b"] is None
            value = found[b"a"]
            assert value is not None and value[:5] == b"\0" + made["id"].to_bytes(4)
            reading = decoder(format, KINDS, registry=RegistryReading(server.registry()))
            assert reading.decode(pa.array([value])).columns.to_pylist() == [{"kind": "a", "n": 1, "total": 7}]
            if format == "avro":
                schema = json.loads(made["schema"])
                row = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
                assert row == {"kind": "a", "n": 1, "total": 7}
            named = last(driver, "named")[b'{"kind":"a"}']
            assert named is not None and named[:5] == b"\0" + server.subjects["kinds"][-1]["id"].to_bytes(4)


def test_windows_of_groups_have_their_times_in_registered_schemas(spark: SparkSession) -> None:
    with fake_registry() as server:
        app = StreamsApp("grouped", schema_registry=server.registry())
        items = app.stream("items", schema="kind STRING, at TIMESTAMP", event_time="at")
        hours = items.group_by("kind", window("at", "1 hour", end="until")).aggregate("hours", n=count())
        hours.to("out", format="avro", key=("until", "kind"))
        with TestDriver(app, spark) as driver:
            driver.pipe("items", [{"kind": "a", "at": "2013-01-01T05:30:00Z"}])
            (value,) = driver.records("out")["value"].to_pylist()
            schema = json.loads(server.subjects["out-value"][-1]["schema"])
            row = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
            start = datetime(2013, 1, 1, 5, tzinfo=UTC)
            assert row == {"window": start, "until": start + timedelta(hours=1), "kind": "a", "n": 1}


def test_groups_as_csv_and_as_plain_avro_beside_a_registry(spark: SparkSession) -> None:
    with fake_registry() as server:
        app, kinds = grouped(server.registry())
        kinds.to("lines", format="csv", key="kind").to("others", format="csv", delimiter=";", key="kind")
        kinds.to("plain", format="avro", schema_registry=False, key="kind")
        with TestDriver(app, spark) as driver:
            pipe(driver)
            assert last(driver, "lines") == {b"a": b'"a",1,7', b"b": None}
            assert last(driver, "others") == {b"a": b'"a";1;7', b"b": None}
            plain = last(driver, "plain")[b"a"]
            assert decoder("avro", KINDS).decode(pa.array([plain])).columns.to_pylist() == [
                {"kind": "a", "n": 1, "total": 7}
            ]
        assert server.subjects == {}


def test_groups_with_keys_in_formats_go_as_a_stream(spark: SparkSession) -> None:
    with fake_registry() as server:
        app, kinds = grouped(server.registry())
        kinds.as_stream().to("out", key="kind", key_format="avro", format="avro")
        with TestDriver(app, spark) as driver:
            pipe(driver)
            key, value = (server.subjects[f"out-{part}"][-1] for part in ("key", "value"))
            records = driver.records("out").slice(driver.records("out").num_rows - 1).to_pylist()
            ((found_key, found),) = [(each["key"], each["value"]) for each in records]
            assert found_key[:5] == b"\0" + key["id"].to_bytes(4) and found[:5] == b"\0" + value["id"].to_bytes(4)
            schema = json.loads(value["schema"])
            assert fastavro.schemaless_reader(io.BytesIO(found[5:]), schema, None)["kind"] == "a"


def test_what_no_registry_has_is_refused() -> None:
    _, kinds = grouped(SchemaRegistry("http://unasked"))
    with pytest.raises(ProgramError, match=r'to\(.out.\): format="json_schema" needs a registry'):
        kinds.to("out", format="json_schema", schema_registry=False)
    _, kinds = grouped(None)
    with pytest.raises(ProgramError, match=r'to\(.out.\): format="protobuf" needs a registry'):
        kinds.to("out", format="protobuf")
    with pytest.raises(ProgramError, match=r"to\(.out.\): a subject is of a registry"):
        kinds.to("out", format="avro", subject="kinds")
