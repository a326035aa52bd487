"""Sources whose schemas a registry has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.spark import ProgramError, SchemaRegistry, StreamsApp
from kohort.spark.program.compiled import SourceSpec
from kohort.spark.program.sources import resolved
from tests.spark.formats.fake_registry import FakeRegistry, fake_registry

FLIGHT = {"type": "record", "name": "Flight", "fields": [
    {"name": "origin", "type": "string"}, {"name": "delay", "type": ["null", "double"]},
]}  # fmt: skip
ORIGIN = T.StructType([T.StructField("origin", T.StringType())])


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        found.add("flights-value", FLIGHT)
        yield found


def source(server: FakeRegistry, **said: Any) -> SourceSpec:
    app = StreamsApp("app", schema_registry=server.registry())
    return resolved(app.stream("flights", format="avro", **said)._origin, "stream")  # type: ignore[arg-type]


def test_the_columns_are_those_of_the_subjects_newest_schema(server: FakeRegistry) -> None:
    found = source(server)
    assert found.schema.simpleString() == "struct<origin:string,delay:double>"
    assert [each.nullable for each in found.schema.fields] == [False, True]
    assert found.registry is not None
    assert found.registry.reader is not None
    assert json.loads(found.registry.reader.text) == FLIGHT
    assert all(each.nullable for each in source(server, tombstones="keep").schema.fields)
    server.add("departures", {**FLIGHT, "fields": FLIGHT["fields"][:1]})
    assert source(server, subject="departures").schema.names == ["origin"]


def test_columns_that_are_said_are_not_asked_for(server: FakeRegistry) -> None:
    found = source(server, schema=ORIGIN)
    assert found.registry is not None
    assert (found.registry.reader, server.asked) == (None, [])


def test_avro_with_a_schema_that_is_said_is_plain_unless_a_registry_is_named_too(server: FakeRegistry) -> None:
    said = json.dumps(FLIGHT)
    assert source(server, avro_schema=said, schema=ORIGIN).registry is None
    found = source(server, avro_schema=said, schema_registry=server.registry()).registry
    assert found is not None
    assert found.reader is not None
    assert found.reader.text == said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"subject": "nothing"}, r"stream 'flights': schema registry .*: it hasn't subject 'nothing'.* Say the c"),
        ({"schema_registry": "http://x"}, r"give SchemaRegistry\(\"http://…\"\) of kohort\.spark"),
        ({"avro_schema": "{}", "schema": ORIGIN, "subject": "s"}, "subject='s' is one of a registry: say"),
    ],
)  # fmt: skip
def test_what_can_not_be(server: FakeRegistry, said: Any, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        source(server, **said)


def test_a_registry_is_for_formats_with_schemas() -> None:
    with pytest.raises(
        ProgramError, match=r'schema_registry is for formats with registered schemas, avro.*, not "json"'
    ):
        StreamsApp("app").stream("t", schema="a INT", schema_registry=SchemaRegistry("http://r"))


def test_a_registry_that_does_not_answer() -> None:
    app = StreamsApp("app", schema_registry=SchemaRegistry("http://127.0.0.1:9", retry_s=0))
    with pytest.raises(
        ProgramError, match=r"stream 'flights': schema registry http://127.0.0.1:9: subject 'flights-va"
    ):
        resolved(app.stream("flights", format="avro")._origin, "stream")  # type: ignore[arg-type]
