"""DescribeClientQuotas: which entities a filter finds."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.broker.client_quotas import QuotaChange
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from tests.broker.handlers.conftest import Ask, Deny

Component = DescribeClientQuotasRequest.Component
ALICE = {"user": "alice"}
ALICE_AT_APP = {"user": "alice", "client-id": "app"}
ANYBODY = {"user": None}
APP = {"client-id": "app"}
ADDRESS = {"ip": "127.0.0.1"}
EVERY = [ALICE, ALICE_AT_APP, ANYBODY, APP, ADDRESS]


def exact(kind: str, name: str) -> Component:
    return Component(entity_type=kind, match_type=0, match=name)


def default(kind: str) -> Component:
    return Component(entity_type=kind, match_type=1, match=None)


def any_of(kind: str) -> Component:
    return Component(entity_type=kind, match_type=2, match=None)


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, EVERY),
        ([], True, []),
        ([exact("user", "alice")], False, [ALICE, ALICE_AT_APP]),
        ([exact("user", "alice")], True, [ALICE]),
        ([default("user")], False, [ANYBODY]),
        ([any_of("user")], False, [ALICE, ALICE_AT_APP, ANYBODY]),
        ([any_of("user"), any_of("client-id")], False, [ALICE_AT_APP]),
        ([any_of("client-id")], True, [APP]),
        ([any_of("ip")], True, [ADDRESS]),
        ([exact("ip", "::1")], False, []),
    ],
)
def test_finds(
    components: list[Component], strict: bool, found: list[dict[str, str | None]], ask: Ask, broker: Broker
) -> None:
    for entity in EVERY:
        key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        broker.client_quotas.alter([QuotaChange(frozenset(entity.items()), [(key, 7.0)])])
    response = ask(DescribeClientQuotasRequest(components=components, strict=strict))
    assert (response.error_code, response.error_message) == (0, None)
    assert [{part.entity_type: part.entity_name for part in entry.entity} for entry in response.entries] == found
    assert all([value.value for value in entry.values] == [7.0] for entry in response.entries)


def test_there_are_none_at_first(ask: Ask) -> None:
    assert ask(DescribeClientQuotasRequest()).entries == []


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([any_of("")], ErrorCode.INVALID_REQUEST),
        ([any_of("user"), default("user")], ErrorCode.INVALID_REQUEST),
        ([any_of("group")], ErrorCode.UNSUPPORTED_VERSION),
        ([Component(entity_type="user", match_type=0, match=None)], ErrorCode.INVALID_REQUEST),
        ([Component(entity_type="user", match_type=1, match="alice")], ErrorCode.INVALID_REQUEST),
        ([Component(entity_type="user", match_type=9, match=None)], ErrorCode.INVALID_REQUEST),
        ([any_of("ip"), any_of("user")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense(components: list[Component], error: ErrorCode, ask: Ask) -> None:
    response = ask(DescribeClientQuotasRequest(components=components))
    assert response.error_code == error
    assert response.error_message
    assert response.entries is None


def test_who_may_not_describe_configurations_sees_nothing(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE_CONFIGS)
    response = ask(DescribeClientQuotasRequest())
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.entries is None
