"""Outputs whose schemas a registry has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.spark import ProgramError, StreamsApp
from kohort.spark.formats.registry_encoder import RegistryWriting
from kohort.spark.program.registered_outputs import written_by_registry
from kohort.spark.program.streams import SinkDef
from tests.spark.formats.fake_registry import FakeRegistry, fake_registry

COLUMNS = T.StructType([T.StructField("n", T.LongType(), nullable=False)])
TEXT = json.dumps({"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]})


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


def written(server: FakeRegistry, **said: Any) -> RegistryWriting | None:
    app = StreamsApp("app", schema_registry=server.registry())
    app.stream("in", schema=COLUMNS).to("out", **({"format": "avro"} | said))
    (end,) = app._graph.ends
    assert isinstance(end, SinkDef)
    return written_by_registry("stream 'in': to('out')", end.output, COLUMNS)


def test_the_schema_follows_from_the_columns_or_is_said(server: FakeRegistry) -> None:
    found = written(server)
    assert found is not None
    wanted = {"type": "record", "name": "out", "fields": [{"name": "n", "type": "long"}]}
    assert (found.subject, found.register, json.loads(found.text)) == ("out-value", True, wanted)
    assert written(server, schema=TEXT, subject="s") == RegistryWriting(server.registry(), "s", "AVRO", TEXT)
    assert server.asked == []


def test_one_that_is_not_to_be_registered_is_the_subjects_newest(server: FakeRegistry) -> None:
    with pytest.raises(ProgramError, match=r"stream 'in': to\('out'\): schema registry .*: it hasn't subject 'out-v"):
        written(server, auto_register=False)
    server.add("out-value", TEXT)
    assert written(server, auto_register=False) == RegistryWriting(server.registry(), "out-value", "AVRO", TEXT, False)


def test_json_and_what_is_said_to_be_plain_go_without(server: FakeRegistry) -> None:
    assert written(server, format="json") is None
    assert written(server, schema_registry=False) is None


@pytest.mark.parametrize(
    "said", [{"format": "json", "subject": "s"}, {"schema_registry": False, "auto_register": False}]
)
def test_a_subject_without_a_registry(server: FakeRegistry, said: Any) -> None:
    with pytest.raises(ProgramError, match=r"to\('out'\): a subject is of a registry"):
        written(server, **said)
