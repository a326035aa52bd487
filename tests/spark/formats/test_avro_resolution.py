"""Avro's schema resolution: what fastavro makes of a value, a writer's and a reader's schema, the decoder does, too."""

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

from kohort.spark.formats import FormatError
from kohort.spark.formats.avro_decoder import AvroDecoder
from kohort.spark.formats.avro_schema import parse

COLUMNS: dict[str, spark.DataType] = {
    "int": spark.IntegerType(), "long": spark.LongType(), "float": spark.DoubleType(), "double": spark.DoubleType(),
    "string": spark.StringType(), "bytes": spark.BinaryType(), "boolean": spark.BooleanType(),
    "color": spark.StringType(),
}  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "int": 7, "long": 2**40, "float": 0.5, "double": 1e300, "string": "ä", "bytes": "\u00ff", "boolean": True,
    "color": "RED",
}  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1), "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False), "double": st.floats(allow_nan=False),
    "string": st.text(max_size=5), "bytes": st.binary(max_size=5), "boolean": st.booleans(),
    "color": st.sampled_from(["RED", "GREEN"]),
}  # fmt: skip
PROMOTED = {
    "int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"], "string": ["bytes"],
    "bytes": ["string"],
}  # fmt: skip


def of(kind: str, name: str, symbols: list[str]) -> Any:
    return {"type": "enum", "name": f"E{name}", "symbols": symbols, "default": "RED"} if kind == "color" else kind


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Any, Any, spark.StructType, list[dict[str, Any]]]:
    """A writer's schema, a reader's, the reader's columns and rows of the writer."""
    writer, reader, columns, values = [], [], [], {}
    for number in range(1 + draw(st.integers(1, 5))):
        name = f"f{number}"
        kind = draw(st.sampled_from(sorted(COLUMNS)))
        wanted = draw(st.sampled_from([kind, *PROMOTED.get(kind, [])]))
        fate = (
            draw(st.sampled_from(["kept", "renamed", "dropped", "added"])) if number else "kept"
        )  # a row needs a column
        null, null_read = draw(st.booleans()), draw(st.booleans())
        if fate != "added":
            written = of(kind, name, ["RED", "GREEN"])
            writer.append({"name": name, "type": ["null", written] if null else written})
            values[name] = st.none() | VALUES[kind] if null else VALUES[kind]
        if fate == "dropped":
            continue
        read = of(wanted, name, draw(st.sampled_from([["RED", "GREEN"], ["RED", "BLUE"]])))
        field: dict[str, Any] = {"name": name, "type": [read, "null"] if null_read else read}
        if fate == "renamed":
            field |= {"name": f"new_{name}", "aliases": [name]}
        if fate == "added":
            field["default"] = DEFAULTS[wanted]
        reader.append(field)
        columns.append(spark.StructField(field["name"], COLUMNS[wanted]))
    rows = draw(st.lists(st.fixed_dictionaries(values), max_size=4))
    order = draw(st.permutations(range(len(reader))))
    reader, columns = [reader[each] for each in order], [columns[each] for each in order]
    record = {"type": "record", "name": "Row"}
    return record | {"fields": writer}, record | {"fields": reader}, spark.StructType(columns), rows


def by_fastavro(value: bytes, writer: Any, reader: Any) -> dict[str, Any] | None:
    try:
        row: Any = fastavro.schemaless_reader(io.BytesIO(value), writer, reader)
    except Exception:
        return None
    for field in reader["fields"]:
        if field.get("default") == "\u00ff" and field["name"] in row and isinstance(row[field["name"]], str):
            row[field["name"]] = b"\xff"  # fastavro leaves defaults as JSON has them
    return row  # type: ignore[no-any-return]


@settings(max_examples=300, deadline=None)
@given(evolutions())
def test_rows_are_what_fastavro_reads(evolution: tuple[Any, Any, spark.StructType, list[dict[str, Any]]]) -> None:
    writer, reader, columns, rows = evolution
    values = [written(writer, row) for row in rows]
    found = AvroDecoder(columns, json.dumps(writer), parse(json.dumps(reader))).decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    wanted = [by_fastavro(value, writer, reader) for value in values]
    assert {row for row, _ in found.errors} == {number for number, row in enumerate(wanted) if row is None}
    assert found.columns.to_pylist() == [row for row in wanted if row is not None]


def written(schema: Any, row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def decoded(columns: str, writer: Any, reader: Any, *rows: dict[str, Any], lenient: bool = False) -> Any:
    record = {"type": "record", "name": "Row"}
    wrote = record | {"fields": writer}
    reads = None if reader is None else parse(json.dumps(record | {"fields": reader, "name": "Other"}))
    made = AvroDecoder(ddl(columns), json.dumps(wrote), reads, lenient=lenient)
    return made.decode(pa.array([written(wrote, row) for row in rows], pa.binary()))


def ddl(columns: str) -> spark.StructType:
    kinds = {"INT": spark.IntegerType(), "BIGINT": spark.LongType(), "TIMESTAMP": spark.TimestampType(),
             "STRING": spark.StringType(), "BINARY": spark.BinaryType(),
             "ARRAY": spark.ArrayType(spark.LongType()),
             "STRUCT": spark.StructType([spark.StructField("b", spark.BinaryType())])}  # fmt: skip
    return spark.StructType(
        [spark.StructField(*(each.split()[0], kinds[each.split()[1]])) for each in columns.split(",")]
    )


def test_a_writers_milliseconds_are_milliseconds_to_a_reader_of_microseconds() -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    found = decoded("t TIMESTAMP", [{"name": "t", "type": millis}], [{"name": "t", "type": micros}], {"t": 1_500})
    assert found.columns.column(0).cast(pa.int64()).to_pylist() == [1_500_000]


def test_a_null_that_the_reader_does_not_take_is_a_bad_record_but_one_without_a_value_is_a_row_of_nulls() -> None:
    writer = parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int"]}]}))
    reader = parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}))
    found = AvroDecoder(ddl("n INT"), writer, reader).decode(pa.array([b"\x00", None, b"\x02\x0a"], pa.binary()))
    assert found.errors == [(0, "n: there is none, and null isn't allowed")]
    assert found.columns.to_pylist() == [{"n": None}, {"n": 5}]


def test_what_is_nested_evolves_too() -> None:
    inner = {"type": "record", "name": "I", "fields": []}
    wider = inner | {"fields": [{"name": "b", "type": "bytes", "default": "\u00ff"}]}
    found = decoded(
        "a ARRAY, s STRUCT, d BINARY",
        [{"name": "a", "type": {"type": "array", "items": "int"}}, {"name": "s", "type": inner}],
        [{"name": "a", "type": {"type": "array", "items": "long"}}, {"name": "s", "type": wider},
         {"name": "d", "type": "bytes", "default": "\u0001"}],
        {"a": [1, 2], "s": {}},
    )  # fmt: skip
    assert found.errors == []
    assert found.columns.to_pylist() == [{"a": [1, 2], "s": {"b": b"\xff"}, "d": b"\x01"}]


def test_without_a_readers_schema_the_columns_say_what_is_wanted() -> None:
    found = decoded("n BIGINT, new STRING", [{"name": "n", "type": "int"}], None, {"n": 5}, lenient=True)
    assert found.columns.to_pylist() == [{"n": 5, "new": None}]


@pytest.mark.parametrize(
    ("written_as", "read_as", "why"),
    [
        ({"name": "n", "type": "string"}, {"name": "n", "type": "int"}, "string was written, which can't be read"),
        ({"name": "m", "type": "int"}, {"name": "n", "type": "int"}, "no default for it"),
        ({"name": "m", "type": "int"}, {"name": "n", "type": "int", "default": "x"}, "must match schema type"),
    ],
)  # fmt: skip
def test_schemas_that_do_not_go_together(written_as: Any, read_as: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        decoded("n INT", [written_as], [read_as])
