"""Requests of clients that send metrics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kohort.broker.broker import Broker
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kohort.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.broker.handlers.conftest import NOW, Ask

CLIENT = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)


def subscribe(broker: Broker, name: str, **configs: str) -> None:
    changes: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
    broker.topics.set_configs(ConfigResource.CLIENT_METRICS, name, changes)


def get(ask: Ask, at: int = 0, client: UUID = CLIENT, **context: Any) -> Any:
    return ask(GetTelemetrySubscriptionsRequest(client_instance_id=client), now=NOW + at, **context)


def push(ask: Ask, subscription: Any, at: int = 0, **fields: Any) -> ErrorCode:
    fields = {"client_instance_id": CLIENT, "subscription_id": subscription, "metrics": b"12345", **fields}
    return ErrorCode(ask(PushTelemetryRequest(**fields), now=NOW + at).error_code)
