"""RenewDelegationToken: by the owner and the renewers, never beyond its last day."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.delegation_tokens import ENABLED, by_sasl, create, nobodys

enabled = pytest.mark.parametrize("settings", [ENABLED])


@enabled
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("who", ["User:alice", "User:bob"])
def test_it_is_renewed(version: int, who: str, ask: Ask) -> None:
    token = create(ask, "User:alice", "bob")
    request = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
    response = ask(request, version, now=60, **by_sasl(who))
    assert (response.error_code, response.expiry_timestamp_ms) == (0, 160)


@enabled
@pytest.mark.parametrize(("period", "expires"), [(0, 150), (30, 80), (5000, 150)])
def test_for_how_long(period: int, expires: int, ask: Ask) -> None:
    token = create(ask)
    request = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period)
    assert ask(request, now=50, **by_sasl()).expiry_timestamp_ms == expires


@enabled
def test_not_beyond_its_last_day(ask: Ask) -> None:
    token = create(ask)
    expires = 0
    for now in range(90, 1000, 90):
        request = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        expires = ask(request, now=now, **by_sasl()).expiry_timestamp_ms
    assert expires == 1000


@enabled
@pytest.mark.parametrize(
    ("who", "now", "secret", "error"),
    [
        ("User:carol", 50, None, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        ("User:alice", 101, None, ErrorCode.DELEGATION_TOKEN_EXPIRED),
        ("User:alice", 50, b"another", ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
    ],
)
def test_what_can_not_be(who: str, now: int, secret: bytes | None, error: ErrorCode, ask: Ask) -> None:
    token = create(ask, "User:alice", "bob")
    request = RenewDelegationTokenRequest(hmac=secret or token.hmac, renew_period_ms=-1)
    response = ask(request, now=now, **by_sasl(who))
    assert (response.error_code, response.expiry_timestamp_ms) == (error, -1)


def test_without_a_secret_there_are_none(ask: Ask) -> None:
    request = RenewDelegationTokenRequest(hmac=b"secret")
    assert ask(request, **by_sasl()).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@enabled
@pytest.mark.parametrize("session", nobodys(), ids=["plain text", "no certificate", "by token"])
def test_who_may_not_ask(session: dict[str, Any], ask: Ask) -> None:
    response = ask(RenewDelegationTokenRequest(hmac=b"secret"), **session)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
