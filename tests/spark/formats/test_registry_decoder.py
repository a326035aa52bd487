"""Values with ids of registered schemas: read by their writers' schemas, in their order, and the bad ones named."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.schema_registry.registry import RegisteredSchema, RegistryError, UnknownSchemaError
from kohort.spark.formats import FormatError
from kohort.spark.formats.registry_decoder import RegistryDecoder
from kohort.spark.formats.registry_formats import AvroFormat, columns_of
from kohort.spark.formats.wire_format import with_header


def record(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


OLD = record({"name": "n", "type": "int"})
NEW = record({"name": "tag", "type": "string", "default": "none"}, {"name": "n", "type": "long"})
OTHER = record({"name": "n", "type": "string"})
SCHEMAS = {
    1: RegisteredSchema(1, "AVRO", OLD),
    2: RegisteredSchema(2, "AVRO", NEW),
    3: RegisteredSchema(3, "AVRO", OTHER),
    4: RegisteredSchema(4, "JSON", "{}"),
    5: RegisteredSchema(5, "AVRO", '"long"'),
}
COLUMNS = spark.StructType([spark.StructField("tag", spark.StringType()), spark.StructField("n", spark.LongType())])


class Schemas:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        if schema_id == 9:
            raise RegistryError("schema registry http://r: no answer")
        if schema_id not in SCHEMAS:
            raise UnknownSchemaError(f"schema registry http://r: it hasn't schema {schema_id}")
        return SCHEMAS[schema_id]


def value(schema_id: int, **row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(SCHEMAS[schema_id].text), row)
    return bool(0).to_bytes() + schema_id.to_bytes(4) + out.getvalue()


def decoder(schemas: Schemas | None = None) -> RegistryDecoder:
    return RegistryDecoder(COLUMNS, schemas or Schemas(), AvroFormat(COLUMNS, SCHEMAS[2]))


values_ = st.one_of(
    st.none(), st.binary(max_size=8), st.integers(-(2**31), 2**31 - 1).map(lambda n: value(1, n=n)),
    st.tuples(st.text(max_size=3), st.integers(0, 2**62)).map(lambda given: value(2, tag=given[0], n=given[1])),
    st.just(value(3, n="x")), st.just(b"\0\0\0\0\7abc"),
)  # fmt: skip


def alone(given: bytes | None) -> Any:
    """The row that a value is, or its error."""
    if given is None:
        return {"tag": None, "n": None}
    if len(given) < 5 or given[0]:
        return ()
    row: Any = None
    try:
        schema_id = int.from_bytes(given[1:5])
        source = io.BytesIO(given[5:])
        row = fastavro.schemaless_reader(source, json.loads(SCHEMAS[schema_id].text), json.loads(NEW))
        return () if source.read() else row
    except Exception:
        return ()


@settings(max_examples=200, deadline=None)
@given(st.lists(values_, max_size=8))
def test_rows_of_many_schemas_stay_in_order(values: list[bytes | None]) -> None:
    found = decoder().decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    wanted = [alone(each) for each in values]
    assert [row for row, _ in found.errors] == [number for number, row in enumerate(wanted) if row == ()]
    assert found.columns.to_pylist() == [row for row in wanted if row != ()]
    good = list(range(len(values))) if found.good is None else found.good.to_pylist()
    assert sorted([*good, *(row for row, _ in found.errors)]) == list(range(len(values)))


def test_faults_are_named() -> None:
    given = [b"{}", b"\0\0", b"", b"\0\0\0\0\x07", value(3, n="x"), b"\0\0\0\0\4{}", value(1, n=5) + b"!"]
    found = dict(decoder().decode(pa.array(given, pa.binary())).errors)
    assert found == {
        0: "it begins with 0x7b, not with 0 and a schema's id, as a registry's serializer writes it",
        1: "it has 2 bytes, and no schema's id: a registry's serializer writes 0 and four bytes first",
        2: "it has 0 bytes, and no schema's id: a registry's serializer writes 0 and four bytes first",
        3: "schema registry http://r: it hasn't schema 7",
        4: "schema 3 can't be read as what is wanted: field n: string was written, which can't be read as long",
        5: 'schema 4 can\'t be read as what is wanted: schema 4 is JSON, and format="avro" reads AVRO',
        6: "schema 1: no Avro of this schema: bytes after the record's end",
    }


@pytest.mark.parametrize("text", ["[" * 100_000, record({"name": "n", "type": "\ud800"}), '"\\ud800"'])
def test_schemas_that_nobody_can_read_make_bad_rows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMAS, 5, RegisteredSchema(5, "AVRO", text))
    ((row, why),) = decoder().decode(pa.array([b"\0\0\0\0\5"], pa.binary())).errors
    assert (row, pa.array([why]).to_pylist()) == (0, [why])


def test_each_schema_is_looked_up_once_but_one_that_is_not_there_again() -> None:
    schemas = Schemas()
    made = decoder(schemas)
    for _ in range(3):
        made.decode(pa.array([value(1, n=1), value(2, tag="", n=1), b"\0\0\0\0\7"], pa.binary()))
    assert schemas.asked == [1, 2, 7, 7, 7]


def test_no_record_is_to_blame_for_a_registry_that_does_not_answer() -> None:
    with pytest.raises(RegistryError, match="no answer"):
        decoder().decode(pa.array([value(1, n=1), b"\0\0\0\0\x09"], pa.binary()))


def test_a_value_that_is_no_records_is_read_only_where_it_is_the_one_column_that_there_is() -> None:
    """And not where one of several is all that a program reads."""
    columns = spark.StructType([COLUMNS["n"]])
    values = pa.array([value(1, n=7), b"\0" + (5).to_bytes(4) + b"\x12"], pa.binary())
    found = RegistryDecoder(columns, Schemas(), AvroFormat(columns, None, alone="n")).decode(values)
    assert (found.columns.to_pylist(), found.errors) == ([{"n": 7}, {"n": 9}], [])
    found = RegistryDecoder(columns, Schemas(), AvroFormat(columns, None)).decode(values)
    assert found.columns.to_pylist() == [{"n": 7}] and [row for row, _ in found.errors] == [1]


def test_a_column_that_may_not_be_null_takes_no_record_without_a_value() -> None:
    columns = columns_of("avro", SCHEMAS[2])
    made = RegistryDecoder(columns, Schemas(), AvroFormat(columns, SCHEMAS[2]))
    found = made.decode(pa.array([None, value(2, tag="a", n=1)], pa.binary()))
    assert (found.columns.to_pylist(), found.errors) == (
        [{"tag": "a", "n": 1}],
        [(0, "tag: there is none, and null isn't allowed")],
    )


@given(st.integers(0, 2**31 - 1), st.lists(st.none() | st.binary(max_size=4), max_size=4))
def test_headers(schema_id: int, values: list[bytes | None]) -> None:
    found = with_header(schema_id, pa.array(values, pa.binary())).to_pylist()
    assert found == [None if each is None else b"\0" + schema_id.to_bytes(4) + each for each in values]


def test_columns_of_a_schema() -> None:
    text = record(
        {"name": "a", "type": ["null", "int"]},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "m", "type": {"type": "map", "values": ["null", {"type": "enum", "name": "E", "symbols": ["X"]}]}},
        {"name": "l", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
            {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}}},
    )  # fmt: skip
    assert columns_of("avro", RegisteredSchema(1, "AVRO", text)).simpleString() == (
        "struct<a:int,t:timestamp,m:map<string,string>,l:array<struct<p:decimal(9,2)>>>"
    )
    with pytest.raises(FormatError, match=r"field u is a union of several types, which no column is: say schema="):
        columns_of("avro", RegisteredSchema(1, "AVRO", record({"name": "u", "type": ["int", "string"]})))
