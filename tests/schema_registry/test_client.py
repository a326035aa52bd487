"""The client of schema registries: what it asks, what it keeps, and what it says when there is no answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.schema_registry import client as registry_client
from kohort.schema_registry.client import RegistryClient
from kohort.schema_registry.registry import RegistryError, UnknownSchemaError
from kohort.spark import SchemaRegistry
from tests.spark.formats.fake_registry import FakeRegistry, fake_registry


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def client(server: FakeRegistry, time: Time | None = None, **more: Any) -> RegistryClient:
    time = time or Time()
    return RegistryClient(server.registry(**more), clock=lambda: time.now, sleep=time.sleep)


def test_a_schema_is_asked_for_once(server: FakeRegistry) -> None:
    number = server.add("t-value", {"type": "string"})
    asking = client(server)
    assert [asking.by_id(number).text for _ in range(3)] == ['{"type": "string"}'] * 3
    assert server.asked == [f"GET /schemas/ids/{number}"]


def test_what_is_not_there_is_asked_for_again(server: FakeRegistry) -> None:
    time = Time()
    asking = client(server, time)
    with pytest.raises(UnknownSchemaError, match=r"it hasn't schema 1 \(Schema not found\)"):
        asking.by_id(1)
    server.add("t-value", '"int"')
    time.now += 10
    assert asking.by_id(1).text == '"int"'


def test_but_an_id_not_for_each_batch(server: FakeRegistry) -> None:
    time = Time()
    asking = client(server, time)
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match=r"it hasn't schema 1 \(Schema not found\)"):
            asking.by_id(1)
        time.now += 3
    assert server.asked == ["GET /schemas/ids/1"]


def test_few_ids_that_are_not_there_are_remembered(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "_MAX_UNKNOWN", 2)
    asking = client(server)
    for number in (1, 2, 3, 3, 2, 1):
        with pytest.raises(UnknownSchemaError):
            asking.by_id(number)
    assert [path.rpartition("/")[2] for path in server.asked] == ["1", "2", "3", "1"]


def test_schemas_that_were_asked_for_last_are_kept(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "_MAX_KEPT", 2)
    numbers = [server.add(f"{name}-value", f'"{name}"') for name in ("int", "long", "bytes")]
    asking = client(server)
    for at in (0, 1, 0, 2, 0):
        asking.by_id(numbers[at])
    assert len(server.asked) == 3
    for name in ("int", "long", "int", "bytes", "int"):
        asking.id_of(f"{name}-value", "AVRO", f'"{name}"', register=False)
    assert len(server.asked) == 6


def test_subjects_are_escaped(server: FakeRegistry) -> None:
    server.add("a/b c", '"int"', "JSON")
    found = client(server).latest("a/b c")
    assert (found.id, found.kind, server.asked) == (1, "JSON", ["GET /subjects/a%2Fb%20c/versions/latest"])


def test_references_come_before_what_names_them(server: FakeRegistry) -> None:
    server.add("c", '"c"')
    server.add("b", '"b"', references=[{"name": "C", "subject": "c", "version": 1}])
    number = server.add("a", '"a"', references=[{"name": "B", "subject": "b", "version": 1}])
    assert client(server).by_id(number).references == (("C", '"c"'), ("B", '"b"'))


def reference(name: str, version: Any = 1) -> dict[str, Any]:
    return {"name": name.upper(), "subject": name, "version": version}


def test_each_reference_is_asked_for_once(server: FakeRegistry) -> None:
    for number in range(20, -1, -1):
        more = [reference(f"s{number + 1}"), reference(f"s{number + 1}")] if number < 20 else []
        server.add(f"s{number}", f'"s{number}"', references=more)
    found = client(server).by_id(21)
    assert found.references == tuple((f"S{number}", f'"s{number}"') for number in range(20, 0, -1))
    assert len(server.asked) == 21


def test_references_that_go_round_end(server: FakeRegistry) -> None:
    server.add("a", '"a"', references=[reference("b")])
    server.add("b", '"b"', references=[reference("a")])
    assert client(server).by_id(1).references == (("A", '"a"'), ("B", '"b"'))


def test_references_are_not_too_many_and_their_records_are_to_blame(server: FakeRegistry) -> None:
    server.add("a", '"a"', references=[reference(f"s{number}") for number in range(201)])
    for number in range(201):
        server.add(f"s{number}", f'"s{number}"')
    asking = client(server)
    for _ in range(2):
        with pytest.raises(UnknownSchemaError, match="schema 1 refers to more than 200 others"):
            asking.by_id(1)
    assert len(server.asked) == 201


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"schema": 5}, {"schema": '"int"', "schemaType": 7}, {"schema": '"int"', "references": 7},
        {"schema": '"int"', "references": [7]}, {"schema": '"int"', "references": [{}]},
        {"schema": '"int"', "references": [{"subject": 1, "name": "A", "version": 1}]},
        {"schema": '"int"', "references": [{"subject": "a", "name": ["A"], "version": 1}]},
        {"schema": '"int"', "references": [{"subject": "a", "name": "A", "version": "x"}]},
        {"schema": '"int"', "references": [{"subject": "a", "name": "A", "version": None}]},
    ],
)  # fmt: skip
def test_answers_that_lack_something(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setattr(server, "answer", lambda path, body: (200, answer))
    for ask in (lambda: client(server).by_id(1), lambda: client(server).latest("t")):
        with pytest.raises(RegistryError, match=f"schema registry {server.url}: (schema 1|subject 't'): its answer"):
            ask()


@pytest.mark.parametrize("number", [None, "x", True, -1, 1 << 32, {}])
def test_answers_whose_id_is_none(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch, number: Any) -> None:
    monkeypatch.setattr(server, "answer", lambda path, body: (200, {"schema": '"int"', "id": number}))
    with pytest.raises(RegistryError, match="subject 't': its answer"):
        client(server).latest("t")
    with pytest.raises(RegistryError, match="the schema in subject 't': its answer"):
        client(server).id_of("t", "AVRO", '"int"', register=True)


def test_an_answer_that_is_nested_too_deeply(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b"[" * 200_000
    monkeypatch.setattr(registry_client, "http_request", lambda *args, **more: deep)
    with pytest.raises(RegistryError, match="schema 1: its answer isn't JSON"):
        client(server).by_id(1)


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
