"""Formats with a registry that isn't ours, beside confluent-kafka's serializers: each reads what the other writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import types as spark

from kohort.console.record_decoding import RecordDecoder
from kohort.schema_registry.client import RegistryClient
from kohort.schema_registry.registry import RegisteredSchema, RegistryError, UnknownSchemaError
from kohort.spark import SchemaRegistry
from kohort.spark.formats import decoder, encoder
from kohort.spark.formats.protobuf_schema import compiled, message_class
from kohort.spark.formats.registry_encoder import RegistryWriting
from kohort.spark.formats.registry_formats import RegistryReading, columns_of, schema_text
from tests.tools import MAVEN

from .apicurio import Apicurio

pytestmark = pytest.mark.long

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "origin", "type": "string"},
        {"name": "delay", "type": ["null", "int"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
LATER: dict[str, Any] = {
    **FLIGHT,
    "fields": [
        {"name": "carrier", "type": "string", "default": "?"},
        {"name": "delay", "type": ["null", "long"], "default": None},
        {"name": "origin", "type": "string"},
    ],
}
AT = datetime(2013, 1, 31, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    MAVEN.require()
    found = Apicurio(tmp_path_factory.mktemp("apicurio"))
    found.start()
    yield found
    found.kill()


@pytest.fixture
def registry(server: Apicurio) -> SchemaRegistry:
    return SchemaRegistry(server.url)


@pytest.fixture
def theirs(server: Apicurio) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": server.url}) as client:
        yield client


def of_values(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_that_confluents_serializer_writes_is_read_as_the_newest_schema(
    registry: SchemaRegistry, theirs: SchemaRegistryClient
) -> None:
    rows = [{"origin": "JFK", "delay": 2, "at": AT}, {"origin": "LGA", "delay": None, "at": AT}]
    old = AvroSerializer(theirs, json.dumps(FLIGHT))
    values = [old(row, of_values("flights")) for row in rows]
    new = AvroSerializer(theirs, json.dumps(LATER))
    values.insert(1, new({"carrier": "DL", "origin": "BOS", "delay": 2**40}, of_values("flights")))

    reader = RegistryClient(registry).latest("flights-value")
    columns = columns_of("avro", reader)
    found = decoder("avro", columns, registry=RegistryReading(registry, reader)).decode(pa.array(values, pa.binary()))
    assert found.errors == []
    assert found.columns.to_pylist() == [
        {"carrier": "?", "delay": 2, "origin": "JFK"},
        {"carrier": "DL", "delay": 2**40, "origin": "BOS"},
        {"carrier": "?", "delay": None, "origin": "LGA"},
    ]
    plain = spark.StructType([spark.StructField("at", spark.TimestampType())])
    found = decoder("avro", plain, registry=RegistryReading(registry)).decode(pa.array(values, pa.binary()))
    assert found.columns.column(0).to_pylist() == [AT, None, AT]


def test_avro_that_we_write_is_read_by_confluents_deserializer(
    registry: SchemaRegistry, theirs: SchemaRegistryClient
) -> None:
    origin = spark.StructField("origin", spark.StringType(), nullable=False)
    columns = spark.StructType([origin, spark.StructField("at", spark.TimestampType())])
    text = schema_text("avro", columns, "departures")
    made = encoder("avro", columns, registry=RegistryWriting(registry, "departures-value", "AVRO", text))
    rows = [{"origin": "JFK", "at": AT}, {"origin": "LGA", "at": None}]
    values = made.encode(pa.Table.from_pylist(rows)).to_pylist()
    read = AvroDeserializer(theirs)
    assert [read(value, of_values("departures")) for value in values] == rows
    assert json.loads(theirs.get_latest_version("departures-value").schema.schema_str) == json.loads(text)


def test_json_schema_goes_both_ways(registry: SchemaRegistry, theirs: SchemaRegistryClient) -> None:
    columns = spark.StructType(
        [
            spark.StructField("origin", spark.StringType(), nullable=False),
            spark.StructField("delay", spark.DoubleType()),
            spark.StructField("tags", spark.ArrayType(spark.StringType(), containsNull=False)),
        ]
    )
    text = schema_text("json_schema", columns, "gates")
    made = encoder("json_schema", columns, registry=RegistryWriting(registry, "gates-value", "JSON", text))
    rows = [{"origin": "JFK", "delay": 2.5, "tags": ["a"]}, {"origin": "LGA", "delay": None, "tags": None}]
    ours = made.encode(pa.Table.from_pylist(rows)).to_pylist()
    read = JSONDeserializer(text, schema_registry_client=theirs)
    assert [read(value, of_values("gates")) for value in ours] == rows

    write = JSONSerializer(text, theirs)
    values = [write(row, of_values("gates")) for row in rows]
    reader = RegistryClient(registry).latest("gates-value")
    assert columns_of("json_schema", reader) == columns
    found = decoder("json_schema", columns, registry=RegistryReading(registry, reader))
    assert found.decode(pa.array([*values, *ours], pa.binary())).columns.to_pylist() == rows * 2


def test_protocol_buffers_go_both_ways(registry: SchemaRegistry, theirs: SchemaRegistryClient) -> None:
    """Framed by hand: confluent-kafka's serializer asks for descriptors, which Apicurio 2.6 doesn't give."""
    ignored = "message Ignored { int32 n = 1; }"
    text = f"""
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    {ignored}
    message Departure {{ string origin = 1; optional int64 delay = 2; google.protobuf.Timestamp at = 3; }}
    """
    schema_id = theirs.register_schema("departed-value", Schema(text, "PROTOBUF"))
    message = message_class(compiled(text).message((1,)))
    header = b"\0" + schema_id.to_bytes(4) + b"\x02\x02"
    sent = [message(origin="JFK", delay=2, at=AT), message(origin="LGA")]
    values = [header + each.SerializeToString() for each in sent]
    alone = RegisteredSchema(0, "PROTOBUF", text.replace(ignored, ""))
    columns = columns_of("protobuf", alone)
    found = decoder("protobuf", columns, registry=RegistryReading(registry, alone)).decode(
        pa.array(values, pa.binary())
    )
    assert found.errors == []
    rows = [{"origin": "JFK", "delay": 2, "at": AT}, {"origin": "LGA", "delay": None, "at": None}]
    assert found.columns.to_pylist() == rows

    ours = schema_text("protobuf", columns, "arrivals")
    made = encoder("protobuf", columns, registry=RegistryWriting(registry, "arrivals-value", "PROTOBUF", ours))
    written = made.encode(pa.Table.from_pylist(rows, schema=found.columns.schema))
    parse = message_class(compiled(ours).message()).FromString
    assert [parse(value[6:]).origin for value in written.to_pylist()] == ["JFK", "LGA"]
    newest = RegistryClient(registry).latest("arrivals-value")
    again = decoder("protobuf", columns, registry=RegistryReading(registry, newest))
    assert again.decode(written).columns.to_pylist() == rows


def test_the_console_shows_what_confluents_serializers_write(
    registry: SchemaRegistry, theirs: SchemaRegistryClient
) -> None:
    decoder = RecordDecoder(RegistryClient(registry))
    avro = AvroSerializer(theirs, json.dumps(FLIGHT))({"origin": "JFK", "delay": 2, "at": AT}, of_values("shown"))
    assert isinstance(avro, bytes)
    found = decoder.value("shown", None, avro)
    assert (found.form, found.note) == ("avro", f"schema {int.from_bytes(avro[1:5], 'big')}")
    assert (found.value["origin"], found.value["delay"]) == ("JFK", 2)
    assert decoder.key("shown", avro) == found

    text = '{"type": "object", "properties": {"origin": {"type": "string"}}}'
    plain = JSONSerializer(text, theirs)({"origin": "JFK"}, of_values("shown-json"))
    found = decoder.value("shown-json", None, plain)
    assert (found.value, found.form) == ({"origin": "JFK"}, "json schema")

    message = 'syntax = "proto3"; message Ignored { int32 n = 1; } message Gone { string origin = 1; int64 delay = 2; }'
    schema_id = theirs.register_schema("shown-proto-value", Schema(message, "PROTOBUF"))
    body = message_class(compiled(message).message((1,)))(origin="JFK", delay=2).SerializeToString()
    found = decoder.value("shown-proto", None, b"\0" + schema_id.to_bytes(4, "big") + b"\x02\x02" + body)
    assert found.note == f"schema {schema_id}, Gone"
    assert found.value["origin"] == "JFK"
    unknown = decoder.value("shown", None, b"\0" + (1_000_000).to_bytes(4, "big") + b"x")
    assert (unknown.form, "it hasn't schema 1000000" in unknown.note) == ("bytes", True)


def test_a_schema_that_the_subjects_rules_refuse_is_not_registered(
    registry: SchemaRegistry, theirs: SchemaRegistryClient
) -> None:
    theirs.register_schema("strict-value", Schema(json.dumps(FLIGHT), "AVRO"))
    theirs.set_compatibility("strict-value", "BACKWARD")
    worse = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "gate", "type": "int"}]}
    with pytest.raises(RegistryError, match="the schema in subject 'strict-value': it answers 409 Conflict"):
        RegistryClient(registry).id_of("strict-value", "AVRO", json.dumps(worse), register=True)


def test_schemas_that_refer_to_others(registry: SchemaRegistry, theirs: SchemaRegistryClient) -> None:
    place = json.dumps({"type": "record", "name": "Place", "fields": [{"name": "code", "type": "string"}]})
    theirs.register_schema("place", Schema(place, "AVRO"))
    trip = json.dumps({"type": "record", "name": "Trip", "fields": [{"name": "to", "type": "Place"}]})
    schema = Schema(trip, "AVRO", [SchemaReference("Place", "place", 1)])
    found = RegistryClient(registry).by_id(theirs.register_schema("trips-value", schema))
    assert found.references == (("Place", place),)
    assert columns_of("avro", found).simpleString() == "struct<to:struct<code:string>>"


def test_what_it_does_not_know(registry: SchemaRegistry) -> None:
    with pytest.raises(UnknownSchemaError, match="it hasn't schema 1000000"):
        RegistryClient(registry).by_id(1_000_000)
    with pytest.raises(UnknownSchemaError, match="it hasn't subject 'nothing'"):
        RegistryClient(registry).latest("nothing")
