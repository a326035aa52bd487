"""Values written under registered schemas."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from kohort.schema_registry.registry import RegistryError
from kohort.spark.formats import FormatError, decoder, encoder
from kohort.spark.formats.registry_encoder import RegistryWriting
from kohort.spark.formats.registry_formats import RegistryReading, schema_text

from .fake_registry import FakeRegistry, fake_registry

COLUMNS = spark.StructType(
    [
        spark.StructField("origin", spark.StringType(), nullable=False),
        spark.StructField("delay", spark.DoubleType()),
        spark.StructField("seen", spark.ArrayType(spark.StructType([spark.StructField("n", spark.IntegerType())]))),
    ]
)
ROWS = [{"origin": "JFK", "delay": 2.5, "seen": [{"n": 1}, None]}, {"origin": "LGA", "delay": None, "seen": None}]


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


def writing(server: FakeRegistry, text: str | None = None, *, register: bool = True) -> RegistryWriting:
    text = schema_text("avro", COLUMNS, "flights-2013") if text is None else text
    return RegistryWriting(server.registry(), "flights-value", "AVRO", text, register)


def test_what_is_written_is_read_and_its_schema_registered_once(server: FakeRegistry) -> None:
    server.add("other", '"int"')
    made = encoder("avro", COLUMNS, registry=writing(server))
    reading = decoder("avro", COLUMNS, registry=RegistryReading(server.registry()))
    table = pa.Table.from_pylist(ROWS, schema=reading.schema)
    for _ in range(2):
        values = made.encode(table)
        assert [value[:5] for value in values.to_pylist()] == [b"\0\0\0\0\2"] * 2
        assert reading.decode(values).columns.to_pylist() == ROWS
    assert server.asked == ["POST /subjects/flights-value/versions", "GET /schemas/ids/2"]


def test_the_schema_of_columns_lets_those_that_may_be_null_come_and_go() -> None:
    text = schema_text("avro", COLUMNS, "flights-2013")
    inner = {"type": "record", "name": "seen", "namespace": "flights_2013",
             "fields": [{"name": "n", "type": ["null", "int"], "default": None}]}  # fmt: skip
    assert json.loads(text) == {
        "type": "record",
        "name": "flights_2013",
        "fields": [
            {"name": "origin", "type": "string"},
            {"name": "delay", "type": ["null", "double"], "default": None},
            {"name": "seen", "type": ["null", {"type": "array", "items": ["null", inner]}], "default": None},
        ],
    }
    fewer = json.dumps({"type": "record", "name": "flights_2013", "fields": [{"name": "origin", "type": "string"}]})
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(fewer), {"origin": "JFK"})
    found = fastavro.schemaless_reader(io.BytesIO(out.getvalue()), json.loads(fewer), json.loads(text))
    assert found == {"origin": "JFK", "delay": None, "seen": None}


def test_a_schema_that_is_not_to_be_registered_has_to_be_there(server: FakeRegistry) -> None:
    made = encoder("avro", COLUMNS, registry=writing(server, register=False))
    table = pa.Table.from_pylist(ROWS)
    with pytest.raises(RegistryError, match="it hasn't the schema in subject 'flights-value'"):
        made.encode(table)
    server.add("flights-value", schema_text("avro", COLUMNS, "flights-2013"))
    assert made.encode(table)[0].as_py()[:5] == b"\0\0\0\0\1"
    assert server.asked[-1] == "POST /subjects/flights-value"


def test_a_schema_has_to_fit_the_columns(server: FakeRegistry) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "other", "type": "int"}]})
    with pytest.raises(FormatError, match="fields that the columns lack: other"):
        encoder("avro", COLUMNS, registry=writing(server, text))
    with pytest.raises(FormatError, match='format="json" has no schemas'):
        encoder("json", COLUMNS, registry=writing(server))
