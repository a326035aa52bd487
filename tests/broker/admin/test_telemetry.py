"""Client metrics: GetTelemetrySubscriptions and PushTelemetry, and what is behind them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.broker.client_telemetry import MAX_CLIENTS, ClientTelemetry
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kohort.protocol.messages.push_telemetry import PushTelemetryRequest
from kohort.protocol.schema import NO_UUID
from tests.broker.admin.conftest import NOW, Ask

CLIENT = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)


def subscribe(broker: Broker, name: str, **configs: str) -> None:
    changes: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
    broker.topics.set_configs(ConfigResource.CLIENT_METRICS, name, changes)


def get(ask: Ask, at: int = 0, client: UUID = CLIENT, **context: Any) -> Any:
    return ask(GetTelemetrySubscriptionsRequest(client_instance_id=client), now=NOW + at, **context)


def push(ask: Ask, subscription: Any, at: int = 0, **fields: Any) -> ErrorCode:
    fields = {"client_instance_id": CLIENT, "subscription_id": subscription, "metrics": b"12345", **fields}
    return ErrorCode(ask(PushTelemetryRequest(**fields), now=NOW + at).error_code)


def test_a_client_is_given_an_id_and_asked_for_nothing(ask: Ask) -> None:
    response = get(ask, client=NO_UUID)
    assert response.client_instance_id not in (NO_UUID, UUID(int=1))
    assert (response.requested_metrics, response.push_interval_ms) == ((), 300_000)
    assert (response.accepted_compression_types, response.telemetry_max_bytes) == ((4, 3, 1, 2), 1_048_576)


def test_a_client_is_asked_for_what_all_its_subscriptions_want(ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="b,a", interval_ms="2000")
    subscribe(broker, "two", metrics="c, a", interval_ms="1000", match="client_id=good.*")
    subscribe(broker, "three", metrics="d", interval_ms="100", match="client_id=bad.*")
    response = get(ask, client_id="good client")
    assert (response.requested_metrics, response.push_interval_ms) == (("a", "b", "c"), 1000)


def test_one_star_stands_for_all(ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="a,*")
    assert get(ask).requested_metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ("client_id=me", True),
        ("client_id=m", False),
        ("client_id=.*,client_source_address=10[.].*", True),
        ("client_id=me,client_source_address=11[.].*", False),
        ("client_instance_id=EjRWeJCrze8SNFZ4kKvN7w", True),
        ("client_software_name=kohort", True),
        ("client_software_name=kohort,client_software_version=.+", False),
        ("", True),
    ],
)
def test_all_that_a_subscription_matches_has_to_fit(match: str, fits: bool, ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="a", match=match)
    response = get(ask, client_id="me", host="10.0.0.1", software_name="kohort")
    assert response.requested_metrics == (("a",) if fits else ())


def test_the_id_of_a_subscription_differs_by_what_is_wanted_and_of_whom(ask: Ask, broker: Broker) -> None:
    first, other_client = get(ask), get(ask, client=UUID(int=CLIENT.int + 1))
    subscribe(broker, "one", metrics="a")
    second = get(ask)
    subscribe(broker, "one", interval_ms="100")
    third = get(ask)
    ids = [response.subscription_id for response in (first, other_client, second, third)]
    assert len(set(ids)) == 4


def test_asking_again_too_soon(ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="a", interval_ms="1000")
    codes = [get(ask, at).error_code for at in (0, 999, 1000)]
    assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]


def test_asking_again_at_once_when_something_has_changed(ask: Ask, broker: Broker) -> None:
    get(ask)
    subscribe(broker, "one", metrics="a")
    assert get(ask, 1).requested_metrics == ("a",)


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


def test_after_an_unknown_subscription_the_client_may_ask_at_once(ask: Ask) -> None:
    get(ask)
    push(ask, 5)
    assert get(ask, 1).error_code == ErrorCode.NONE


def test_a_push_for_what_was_wanted_before(ask: Ask, broker: Broker) -> None:
    old = get(ask).subscription_id
    subscribe(broker, "one", metrics="a")
    assert push(ask, old, 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_a_client_that_was_forgotten_may_push() -> None:
    telemetry = ClientTelemetry(list, 100, lambda: CLIENT)
    ids = [UUID(int=number) for number in range(2, MAX_CLIENTS + 3)]
    subscriptions = [telemetry.subscribe(client, {}, NOW).subscription_id for client in ids]
    telemetry.push(ids[0], {}, NOW + 1, subscription_id=subscriptions[0], terminating=False, compression=0, size=1)
    assert telemetry.pushes == 1


def test_ids_that_are_taken_are_not_given_again() -> None:
    ids = iter([CLIENT, CLIENT, UUID(int=5)])
    telemetry = ClientTelemetry(list, 100, lambda: next(ids))
    telemetry.subscribe(telemetry.new_id(), {}, NOW)
    assert telemetry.new_id() == UUID(int=5)
