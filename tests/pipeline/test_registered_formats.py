"""Formats with a schema registry, and CSV, in a running application."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from kohort.spark import DeadLetter, SchemaRegistry, StreamsApp, count
from kohort.spark.formats.protobuf_schema import compiled, message_class
from kohort.testing.broker import Broker
from tests.interop.apicurio import Apicurio
from tests.interop.java.build import MAVEN_S
from tests.spark.formats.fake_registry import fake_registry
from tests.tools import MAVEN

from .applications import Heard, create_topics, producer, read, run_until

pytestmark = pytest.mark.timeout(MAVEN_S)

OLD: dict[str, Any] = {"type": "record", "name": "Bid", "fields": [{"name": "price", "type": "int"}]}
NEW: dict[str, Any] = {
    "type": "record",
    "name": "Bid",
    "fields": [{"name": "bidder", "type": "string", "default": "?"}, {"name": "price", "type": "long"}],
}


def written(schema_id: int, schema: Any, **row: Any) -> bytes:
    return registered(schema_id, schema, row)


def registered(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row["price"])


@pytest.mark.long
def test_registered_avro_and_csv_go_in_and_come_out(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "dear", "lines", "graves", "counts", "registered-counts")
    with fake_registry() as server:
        old, new = server.add("bids-value", OLD), server.add("bids-value", NEW)
        good = [written(old, OLD, price=5), written(new, NEW, bidder="ada", price=2**40), written(old, OLD, price=7)]
        bad = [b"{}", written(77, OLD, price=1)]
        sending = producer(servers)
        for value in [good[0], *bad, *good[1:]]:
            sending.produce("bids", value, b"key", partition=0)
        sending.flush()

        app = StreamsApp("registered", bootstrap_servers=servers, state_dir=tmp_path, schema_registry=server.registry())
        bids = app.stream("bids", format="avro", on_error=DeadLetter("graves"))
        bids.transform(lambda df: df.where("price > 5")).to("dear", format="avro")
        bids.to("lines", format="csv", delimiter=";")
        counts = bids.group_by("bidder").aggregate("n", n=count()).to("counts")
        counts.to("registered-counts", format="avro", key="bidder")
        heard = Heard()
        run_until(app, spark, heard, lambda: heard.through(len(good) + len(bad), moved=True))
        assert not heard.failures
        schema = json.loads(server.subjects["dear-value"][-1]["schema"])
        dear_id = server.subjects["dear-value"][-1]["id"]
        counted = server.subjects["registered-counts-value"][-1]

    values = [one.value() for one in read(servers, "dear")]
    assert all(value[:5] == b"\0" + dear_id.to_bytes(4) for value in values)
    rows: list[Any] = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in values]
    wanted = [{"bidder": "?", "price": 7}, {"bidder": "ada", "price": 2**40}]
    assert sorted(rows, key=str) == wanted
    assert sorted(one.value() for one in read(servers, "lines")) == [b'"?";5', b'"?";7', b'"ada";1099511627776']
    assert sorted(one.value() for one in read(servers, "graves")) == sorted(bad)
    last = {one.key(): one.value() for one in read(servers, "registered-counts")}
    assert all(value[:5] == b"\0" + counted["id"].to_bytes(4) for value in last.values())
    schema = json.loads(counted["schema"])
    groups: list[Any] = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in last.values()]
    assert sorted(groups, key=str) == [{"bidder": "?", "n": 2}, {"bidder": "ada", "n": 1}]


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    MAVEN.require()
    found = Apicurio(tmp_path_factory.mktemp("apicurio"))
    found.start()
    yield found
    found.kill()


@pytest.mark.long
def test_with_a_registry_that_is_not_ours_each_format_comes_out_as_others_read_it(
    spark: SparkSession, kohort_fresh_broker: Broker, apicurio: Apicurio, tmp_path: Path
) -> None:
    """Avro of two schemas and keys of a third one go in; what comes out is read by confluent-kafka's deserializers."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "as-avro", "as-json", "as-protobuf", "graves")
    with SchemaRegistryClient({"url": apicurio.url}) as theirs:
        old, new = (theirs.register_schema("bids-value", Schema(json.dumps(each), "AVRO")) for each in (OLD, NEW))
        key = theirs.register_schema("bids-key", Schema('"long"', "AVRO"))
        good = [written(old, OLD, price=5), written(new, NEW, bidder="ada", price=2**40)]
        bad = [b"{}", written(1_000_000, OLD, price=1)]
        sending = producer(servers)
        for number, value in enumerate([good[0], *bad, good[1]]):
            sending.produce("bids", value, registered(key, "long", number), partition=0)
        sending.flush()

        registry = SchemaRegistry(apicurio.url)
        app = StreamsApp("others", bootstrap_servers=servers, state_dir=tmp_path, schema_registry=registry)
        bids = app.stream("bids", format="avro", key_format="avro", on_error=DeadLetter("graves"))
        bids.to("as-avro", format="avro", key="key", key_format="avro")
        bids.to("as-json", format="json_schema")
        bids.to("as-protobuf", format="protobuf")
        heard = Heard()
        run_until(app, spark, heard, lambda: heard.through(len(good) + len(bad)))
        assert not heard.failures

        def texts(topic: str) -> str:
            return str(theirs.get_latest_version(f"{topic}-value").schema.schema_str)

        def sent(topic: str) -> list[bytes]:
            return [one.value() or b"" for one in read(servers, topic)]

        rows = [{"bidder": "?", "price": 5, "key": 0}, {"bidder": "ada", "price": 2**40, "key": 3}]
        values = {name: SerializationContext(name, MessageField.VALUE) for name in ("as-avro", "as-json")}
        avro = AvroDeserializer(theirs)
        assert in_order(avro(each, values["as-avro"]) for each in sent("as-avro")) == rows
        keys = SerializationContext("as-avro", MessageField.KEY)
        assert sorted(avro(one.key(), keys) for one in read(servers, "as-avro")) == [0, 3]
        from_json = JSONDeserializer(texts("as-json"), schema_registry_client=theirs)
        assert in_order(from_json(each, values["as-json"]) for each in sent("as-json")) == rows
        message = message_class(compiled(texts("as-protobuf")).message())
        parsed = [message.FromString(each[6:]) for each in sent("as-protobuf")]
        assert in_order({name: getattr(each, name) for name in rows[0]} for each in parsed) == rows
    assert sorted(one.value() or b"" for one in read(servers, "graves")) == sorted(bad)
