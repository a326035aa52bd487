"""A broker without sockets. `ask` sends it requests; requests and responses are encoded and decoded."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.clock import now_ms
from kohort.broker.config import Settings
from kohort.broker.config.listeners import Endpoint
from kohort.broker.context import Context
from kohort.broker.reply import Reply
from kohort.broker.session import Session
from kohort.log.slices import in_one_go
from kohort.log.types import Origin
from kohort.protocol.message import Request
from kohort.protocol.messages import api, module_name
from kohort.protocol.records.rows import encode_records
from tests.broker.handlers.acls import GROUPS, READS, WRITES

NOW = 1_700_000_000_000
NODE = 1
ADVERTISED = Endpoint("localhost", 9092)
QUICK = {
    "node.id": NODE,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}

Ask = Callable[..., Any]
Deny = Callable[..., None]


class Rules:
    """Allows all operations but those of its rules; None in a rule matches anything."""

    def __init__(self, *rules: tuple[Operation | None, ResourceType | None, str | None]) -> None:
        self.rules = rules

    def allowed(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        asked = (operation, kind, name)
        return not any(all(want in (None, have) for want, have in zip(rule, asked, strict=True)) for rule in self.rules)


def done(response: Any) -> Any:
    """What a handler returns, or what its slices do."""
    return in_one_go(response) if isinstance(response, GeneratorType) else response


def asker(broker: Broker) -> Ask:
    """Returns a function that handles a request in a version, the newest by default, and returns the response."""

    def send(
        request: Request, version: int | None = None, *, now: int = NOW, client_id: str = "", **session: Any
    ) -> Any:
        spec = request.__message__
        version = spec.versions[-1] if version is None else version
        received = type(request).decode(request.encode(version), version)
        handler = importlib.import_module(f"kohort.broker.handlers.{module_name(spec.api)}")
        response = handler.handle(
            received, Context(broker, version, now, client_id, Session(advertised=ADVERTISED, **session), spec.api)
        )
        response = done(response)
        if isinstance(response, Reply):
            if not response.done:
                broker.wheel.advance(now_ms())
                broker.groups.drain()
            assert response.done, f"{spec.api} waits"
            response = done(response.value)
        return api(spec.key).response.decode(response.encode(version), version)

    return send


def append_records(broker: Broker, topic: str, index: int, count: int) -> None:
    """Appends batches of one record."""
    append(broker, topic, index, *[encode_records([(b"k", b"v")], NOW) for _ in range(count)])


def append(broker: Broker, topic: str, index: int, *batches: bytearray) -> None:
    partition = broker.topics.partition(topic, index)
    assert partition is not None
    for batch in batches:
        partition.log.append(batch, now=NOW, origin=Origin.COORDINATOR)


@pytest.fixture
def settings() -> dict[str, object]:
    """The broker's settings; tests override them with `parametrize("settings", …)`."""
    return {}


@pytest.fixture
def broker(tmp_path: Path, settings: dict[str, object]) -> Iterator[Broker]:
    authorizer = None if "authorizer.class.name" in settings else Rules()
    made = Broker.build(Settings.of({**QUICK, **settings}), data_dir=tmp_path, authorizer=authorizer)
    yield made
    made.log_manager.close(made.log_manager.logs(made.topics))


@pytest.fixture
def rules_broker(broker: Broker) -> Broker:
    """The broker with a few access rules, whose settings name an authorizer."""
    assert broker.access_rules is not None
    broker.access_rules.add([READS, WRITES, GROUPS])
    return broker


@pytest.fixture
def ask(broker: Broker) -> Ask:
    return asker(broker)


@pytest.fixture
def deny(broker: Broker) -> Deny:
    """Forbids an operation on a type of resource, or on one resource."""

    def forbid(operation: Operation | None, kind: ResourceType | None = None, name: str | None = None) -> None:
        assert isinstance(broker.authorizer, Rules)
        broker.authorizer.rules += ((operation, kind, name),)

    return forbid


@pytest.fixture
def open_transaction(broker: Broker) -> None:
    """A transaction of producer 7 in partition 0 of "there", from offset 2 on."""
    broker.topics.create("there", 2)
    append_records(broker, "there", 0, 2)
    batch = encode_records([(b"k", b"v")], NOW, producer_id=7, producer_epoch=3, transactional=True)
    append(broker, "there", 0, batch)
