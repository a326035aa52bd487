"""GetTelemetrySubscriptions: which metrics a client is asked for (KIP-714)."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.telemetry import CLIENT, get, push, subscribe


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


def test_a_pattern_that_is_slow_elsewhere(ask: Ask, broker: Broker) -> None:
    subscribe(broker, "one", metrics="a", match="client_id=(a+)+b")
    assert get(ask, client_id="a" * 30_000).requested_metrics == ()


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


def test_after_an_unknown_subscription_the_client_may_ask_at_once(ask: Ask) -> None:
    get(ask)
    push(ask, 5)
    assert get(ask, 1).error_code == ErrorCode.NONE
