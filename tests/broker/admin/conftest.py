"""A broker without sockets, and a way to ask it: every request and response goes through its bytes."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config import Settings, log_config
from kohort.broker.context import Context
from kohort.broker.security import AllowAll, Operation, ResourceType
from kohort.broker.telemetry import Telemetry
from kohort.broker.topics import ConfigResource, Partition, Topic, Topics
from kohort.log.log import Log
from kohort.protocol.message import Request
from kohort.protocol.messages import api, module_name
from kohort.protocol.records.plain import encode_records

NOW = 1_700_000_000_000
NODE = 1


class Deny:
    """Allows all but what is listed; a None in a rule stands for anything."""

    def __init__(self, *rules: tuple[Operation | None, ResourceType | None, str | None]) -> None:
        self.rules = rules

    def allowed(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        asked = (operation, kind, name)
        return not any(all(want in (None, have) for want, have in zip(rule, asked, strict=True)) for rule in self.rules)


class MemoryBroker:
    """Topics, logs and settings as a broker has them, without what needs an event loop."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self.base = self.config = settings
        self.authorizer: Any = AllowAll()
        self.node_id = NODE
        self.cluster_id = "the-cluster"
        self.host, self.port, self.rack = "localhost", 9092, None
        self.path = directory
        self.storage = self
        self.records: list[Any] = []
        self.topics = Topics(NODE, self, self.records.extend, uuid.uuid4, self.configured)
        self.telemetry = Telemetry(self.subscriptions, settings.int("telemetry.max.bytes"), uuid.uuid4)

    def subscriptions(self) -> list[dict[str, str]]:
        kind = ConfigResource.CLIENT_METRICS
        return [self.topics.configs(kind, name) for name in self.topics.config_names(kind)]

    def configured(self, kind: ConfigResource, name: str) -> None:
        if kind is ConfigResource.BROKER:
            self.config = self.base.with_dynamic(self.topics.configs(kind, ""), self.topics.configs(kind, str(NODE)))
            for topic in self.topics:
                self.configure(topic)

    def open(self, topic: Topic, index: int) -> Log:
        config = log_config(self.config, topic.configs)
        return Log.open(self.path / f"{topic.name}-{index}", config, now=NOW, clean=True)

    def remove(self, partition: Partition) -> None:
        partition.log.delete()

    def configure(self, topic: Topic) -> None:
        for partition in topic.partitions:
            partition.log.config = log_config(self.config, topic.configs)

    def end_transaction(
        self, partition: Partition, producer_id: int, producer_epoch: int, *, now: int, **marker: Any
    ) -> None:
        partition.log.append_marker(producer_id, producer_epoch, now=now, **marker)

    def produce(self, topic: str, index: int, count: int, **producer: Any) -> None:
        partition = self.topics.partition(topic, index)
        assert partition is not None
        for _ in range(count):
            partition.log.append(encode_records([(b"k", b"v")], NOW, **producer), now=NOW)

    def close(self) -> None:
        for partition in self.topics.partitions():
            partition.log.close()


Ask = Callable[..., Any]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MemoryBroker]:
    made = MemoryBroker(tmp_path, Settings.of({"node.id": NODE}))
    yield made
    made.close()


@pytest.fixture
def ask(broker: MemoryBroker) -> Ask:
    """Send a request in a version (the newest), with what `Context` takes; gives the response as a client reads it."""

    def send(request: Request, version: int | None = None, *, now: int = NOW, **context: Any) -> Any:
        spec = request.__message__
        version = spec.versions[-1] if version is None else version
        received = type(request).decode(request.encode(version), version)
        handler = importlib.import_module(f"kohort.broker.handlers.{module_name(spec.api)}")
        response = handler.handle(received, Context(broker, version, now, **context))  # type: ignore[arg-type]
        return api(spec.key).response.decode(response.encode(version), version)

    return send


@pytest.fixture
def deny(broker: MemoryBroker) -> Callable[..., None]:
    """Forbid an operation on a type of resource, and a name."""

    def forbid(operation: Operation | None, kind: ResourceType | None = None, name: str | None = None) -> None:
        rules = broker.authorizer.rules if isinstance(broker.authorizer, Deny) else ()
        broker.authorizer = Deny(*rules, (operation, kind, name))

    return forbid
