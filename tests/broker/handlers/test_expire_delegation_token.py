"""ExpireDelegationToken: at once or later, by the owner and the renewers."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.delegation_tokens import ENABLED, by_sasl, create, nobodys

enabled = pytest.mark.parametrize("settings", [ENABLED])


@enabled
@pytest.mark.parametrize("version", [1, 2])
def test_at_once(version: int, ask: Ask, broker: Broker) -> None:
    token = create(ask)
    request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
    response = ask(request, version, now=500, **by_sasl())
    assert (response.error_code, response.expiry_timestamp_ms) == (0, 500)
    assert list(broker.delegation_tokens) == []
    assert ask(request, version, **by_sasl()).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@enabled
@pytest.mark.parametrize(("period", "expires"), [(0, 50), (500, 550), (5000, 1000)])
def test_later(period: int, expires: int, ask: Ask, broker: Broker) -> None:
    token = create(ask, "User:alice", "bob")
    request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period)
    assert ask(request, now=50, **by_sasl("User:bob")).expiry_timestamp_ms == expires
    assert [each.expires_at for each in broker.delegation_tokens] == [expires]


@enabled
@pytest.mark.parametrize(
    ("who", "now", "error"),
    [
        ("User:carol", 50, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        ("User:alice", 101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ],
)
def test_what_can_not_be(who: str, now: int, error: ErrorCode, ask: Ask) -> None:
    request = ExpireDelegationTokenRequest(hmac=create(ask).hmac, expiry_time_period_ms=1)
    response = ask(request, now=now, **by_sasl(who))
    assert (response.error_code, response.expiry_timestamp_ms) == (error, -1)


@enabled
def test_what_has_expired_is_swept(ask: Ask, broker: Broker) -> None:
    create(ask)
    kept = create(ask, now=1)
    broker.delegation_tokens.sweep(101)
    assert [token.id for token in broker.delegation_tokens] == [kept.token_id]


def test_without_a_secret_there_are_none(ask: Ask) -> None:
    request = ExpireDelegationTokenRequest(hmac=b"secret")
    assert ask(request, **by_sasl()).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@enabled
@pytest.mark.parametrize("session", nobodys(), ids=["plain text", "no certificate", "by token"])
def test_who_may_not_ask(session: dict[str, Any], ask: Ask) -> None:
    response = ask(ExpireDelegationTokenRequest(hmac=b"secret"), **session)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
