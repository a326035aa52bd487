"""JSON Schema: columns of a schema, and the schema of columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError
from kohort.spark.formats.json_schema import columns_of, schema_of


def ddl(**properties: Any) -> str:
    return columns_of(json.dumps({"type": "object", "properties": properties})).simpleString()


def test_columns_of_properties() -> None:
    found = ddl(
        a={"type": "integer"}, b={"type": ["null", "number"]}, c={"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        d={"type": "string", "format": "date-time"}, e={"type": "array", "items": {"type": "string", "format": "date"}},
        f={"type": "object", "properties": {"x": {"type": "string"}}},
        g={"type": "object", "additionalProperties": {"type": "integer"}},
    )  # fmt: skip
    assert found == (
        "struct<a:bigint,b:double,c:boolean,d:timestamp,e:array<date>,f:struct<x:string>,g:map<string,bigint>>"
    )


def test_what_is_required_may_not_be_null() -> None:
    schema = {"properties": {name: {"type": "string"} for name in "ab"}, "required": ["a"]}
    assert [each.nullable for each in columns_of(json.dumps(schema)).fields] == [False, True]


def test_definitions_are_looked_up() -> None:
    place = {"type": "object", "properties": {"code": {"type": "string"}}}
    schema = {"properties": {"to": {"$ref": "#/$defs/place"}}, "$defs": {"place": place}}
    assert columns_of(json.dumps(schema)).simpleString() == "struct<to:struct<code:string>>"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "isn't JSON"),
        ('{"type": "string"}', "no object's with properties"),
        ('{"properties": {"a": {"type": ["string", "integer"]}}}', "property a has no one type"),
        ('{"properties": {"a": {}}}', "property a has no one type"),
        ('{"properties": {"a": {"type": "array", "items": {"type": "object"}}}}', r"property a\[\] has no one type"),
        ('{"properties": {"a": {"$ref": "http://x/y"}}}', "another document, which isn't looked up"),
        ('{"properties": {"a": {"$ref": "#"}}}', "has no one type"),
    ],
)
def test_schemas_that_are_no_columns(schema: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        columns_of(schema)


plain = st.sampled_from(
    [spark.StringType(), spark.LongType(), spark.DoubleType(), spark.BooleanType(), spark.DateType(),
     spark.TimestampType(), spark.BinaryType()]
)  # fmt: skip


def structs(inner: Any) -> Any:
    field = st.tuples(inner, st.booleans())
    return st.lists(field, min_size=1, max_size=3).map(
        lambda fields: spark.StructType([spark.StructField(f"f{n}", *each) for n, each in enumerate(fields)])
    )


kinds = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.builds(spark.ArrayType, inner, st.booleans()),
        st.builds(lambda value, null: spark.MapType(spark.StringType(), value, null), inner, st.booleans()),
        structs(inner),
    ),
    max_leaves=6,
)


@given(structs(kinds))
def test_the_schema_of_columns_has_these_columns(columns: spark.StructType) -> None:
    assert columns_of(schema_of(columns, "it")) == columns


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"oneOf": 3}}},
        {"type": "object", "properties": {"a": {"type": [{}]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/0"}},
            "$defs": {
                str(number): {"properties": {side: {"$ref": f"#/$defs/{number + 1}"} for side in "lr"}}
                for number in range(40)
            },
        },
    ],
    ids=["properties in a list", "one of 3", "a type that is none", "itself", "2^40 parts"],
)  # fmt: skip
def test_what_a_registry_may_say_is_an_error(schema: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        columns_of(json.dumps(schema))


def test_nesting_without_end_is_an_error() -> None:
    with pytest.raises(FormatError, match="isn't JSON"):
        columns_of("[" * 1_000_000)
