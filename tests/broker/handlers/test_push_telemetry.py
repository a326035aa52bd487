"""PushTelemetry: metrics that clients send (KIP-714)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.telemetry import get, push, subscribe


def test_metrics_are_taken_and_counted(ask: Ask, broker: Broker) -> None:
    subscription = get(ask).subscription_id
    assert push(ask, subscription) is ErrorCode.NONE
    assert (broker.client_telemetry.pushes, broker.client_telemetry.bytes_received) == (1, 5)


def test_pushing_too_soon(ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="a", interval_ms="1000")
    subscription = get(ask).subscription_id
    codes = [push(ask, subscription, at) for at in (600, 1500, 1600)]
    assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]


def test_the_last_push_may_come_early_and_is_the_last(ask: Ask) -> None:
    subscription = get(ask).subscription_id
    codes = [push(ask, subscription), push(ask, subscription, 1, terminating=True), push(ask, subscription, 999_999)]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_instance_id": NO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"client_instance_id": UUID(int=1)}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 5}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(1_048_577)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": bytes(1_048_576)}, ErrorCode.NONE),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
def test_pushes_that_are_refused(fields: dict[str, Any], code: ErrorCode, ask: Ask, broker: Broker) -> None:
    assert push(ask, get(ask).subscription_id, **fields) is code
    assert broker.client_telemetry.pushes == (1 if code is ErrorCode.NONE else 0)


def test_a_push_for_what_was_wanted_before(ask: Ask, broker: Broker) -> None:
    old = get(ask).subscription_id
    subscribe(broker, "one", metrics="a")
    assert push(ask, old, 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
