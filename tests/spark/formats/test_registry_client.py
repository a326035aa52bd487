"""The client of schema registries: what it asks, what it keeps, and what it says when there is no answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.spark import SchemaRegistry
from kohort.spark.formats.registry_client import RegistryClient
from kohort.spark.formats.schema_registry import RegistryError, UnknownSchemaError

from .fake_registry import FakeRegistry, fake_registry


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def client(server: FakeRegistry, **more: Any) -> RegistryClient:
    time = Time()
    return RegistryClient(server.registry(**more), clock=lambda: time.now, sleep=time.sleep)


def test_a_schema_is_asked_for_once(server: FakeRegistry) -> None:
    number = server.add("t-value", {"type": "string"})
    asking = client(server)
    assert [asking.by_id(number).text for _ in range(3)] == ['{"type": "string"}'] * 3
    assert server.asked == [f"GET /schemas/ids/{number}"]


def test_what_is_not_there_is_asked_for_again(server: FakeRegistry) -> None:
    asking = client(server)
    with pytest.raises(UnknownSchemaError, match=r"it hasn't schema 1 \(Schema not found\)"):
        asking.by_id(1)
    server.add("t-value", '"int"')
    assert asking.by_id(1).text == '"int"'


def test_subjects_are_escaped(server: FakeRegistry) -> None:
    server.add("a/b c", '"int"', "JSON")
    found = client(server).latest("a/b c")
    assert (found.id, found.kind, server.asked) == (1, "JSON", ["GET /subjects/a%2Fb%20c/versions/latest"])


def test_references_come_before_what_names_them(server: FakeRegistry) -> None:
    server.add("c", '"c"')
    server.add("b", '"b"', references=[{"name": "C", "subject": "c", "version": 1}])
    number = server.add("a", '"a"', references=[{"name": "B", "subject": "b", "version": 1}])
    assert client(server).by_id(number).references == (("C", '"c"'), ("B", '"b"'))


def test_a_registry_that_does_not_answer_is_asked_again(server: FakeRegistry) -> None:
    server.add("t", '"int"')
    server.failures = [503, 500, 429]
    assert client(server).by_id(1).text == '"int"'


def test_but_not_for_ever(server: FakeRegistry) -> None:
    server.failures = [503] * 1000
    with pytest.raises(RegistryError, match=r"schema 1: it answers 503 .*\(not today\); asked for 30 s") as caught:
        client(server).by_id(1)
    assert not isinstance(caught.value, UnknownSchemaError)
    assert len(server.asked) < 20


def test_a_refusal_is_final(server: FakeRegistry) -> None:
    server.failures = [401]
    with pytest.raises(RegistryError, match="it answers 401 Unauthorized"):
        client(server).by_id(1)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("auth", "sent"),
    [(("ada", "secret"), "Basic " + base64.b64encode(b"ada:secret").decode()), ("token", "Bearer token"), (None, None)],
)
def test_who_asks_is_said(server: FakeRegistry, auth: Any, sent: str | None) -> None:
    server.add("t", '"int"')
    client(server, auth=auth).by_id(1)
    assert server.headers[0].get("authorization") == sent
    assert "secret" not in repr(server.registry(auth=auth))


def test_schemas_are_registered_once_or_looked_up(server: FakeRegistry) -> None:
    asking = client(server)
    with pytest.raises(UnknownSchemaError, match=r"it hasn't the schema in subject 't-value' \(Schema not found\)"):
        asking.id_of("t-value", "AVRO", '"int"', register=False)
    assert [asking.id_of("t-value", "AVRO", '"int"', register=True) for _ in range(2)] == [1, 1]
    assert asking.id_of("t-value", "AVRO", '"int"', register=False) == 1
    assert asking.id_of("u-value", "JSON", "{}", register=True) == 2
    assert server.bodies == [{"schema": '"int"'}, {"schema": "{}", "schemaType": "JSON"}]


@pytest.mark.parametrize("url", ["registry:8081", "ftp://registry", "", "http://ada:secret@registry"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="SchemaRegistry") as caught:
        SchemaRegistry(url)
    assert "secret" not in str(caught.value)
