"""CreateDelegationToken: tokens for oneself and for others, in the order of Kafka's checks."""

from __future__ import annotations

import asyncio
import hmac
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.broker.handlers.conftest import QUICK, Ask, Deny, asker
from tests.broker.handlers.delegation_tokens import ENABLED, Renewer, by_sasl, create, nobodys

enabled = pytest.mark.parametrize("settings", [ENABLED])


@enabled
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_for_oneself(version: int, ask: Ask) -> None:
    response = ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), version, now=5000, **by_sasl())
    assert response.error_code == 0
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    if version >= 3:
        assert (response.token_requester_principal_type, response.token_requester_principal_name) == ("User", "alice")
    assert (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms) == (5000, 5100, 6000)
    assert response.hmac == hmac.digest(b"secret", response.token_id.encode(), "sha512")


@enabled
@pytest.mark.parametrize(("wanted", "expires", "most"), [(50, 50, 50), (500, 100, 500), (5000, 100, 1000)])
def test_it_lives_no_longer_than_wanted_or_allowed(wanted: int, expires: int, most: int, ask: Ask) -> None:
    response = ask(CreateDelegationTokenRequest(max_lifetime_ms=wanted), now=0, **by_sasl())
    assert (response.expiry_timestamp_ms, response.max_timestamp_ms) == (expires, most)


def test_without_a_secret_there_are_none(ask: Ask) -> None:
    response = ask(CreateDelegationTokenRequest(), **by_sasl())
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms) == (-1, -1, -1)
    assert (response.principal_name, response.token_id, response.hmac) == ("alice", "", b"")


@enabled
@pytest.mark.parametrize("session", nobodys(), ids=["plain text", "no certificate", "by token"])
def test_who_gets_none(session: dict[str, Any], ask: Ask) -> None:
    response = ask(CreateDelegationTokenRequest(), **session)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@enabled
def test_a_token_for_another_needs_a_right(ask: Ask, deny: Deny) -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1)
    response = ask(request, **by_sasl())
    assert response.error_code == 0
    assert (response.principal_name, response.token_requester_principal_name) == ("bob", "alice")
    deny(Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    assert ask(request, **by_sasl()).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert ask(request, **by_sasl("User:bob")).error_code == 0


@enabled
def test_only_users_renew(ask: Ask) -> None:
    request = CreateDelegationTokenRequest(renewers=[Renewer(principal_type="Group", principal_name="g")])
    assert ask(request, **by_sasl()).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def stopped(broker: Broker) -> None:
    await broker.start()
    await broker.stop()


def test_tokens_stay_over_a_restart(tmp_path: Path) -> None:
    settings = Settings.of({**QUICK, **ENABLED, "delegation.token.expiry.check.interval.ms": 3_600_000})
    broker = Broker.build(settings, data_dir=tmp_path)
    now = 2**62  # so that none is swept
    token = create(asker(broker), "User:alice", "bob", now=now)
    before = list(broker.delegation_tokens)
    asyncio.run(stopped(broker))

    again = Broker.build(settings, data_dir=tmp_path)
    asyncio.run(stopped(again))
    assert list(again.delegation_tokens) == before
    assert before[0].renewers == ("User:bob",)
    assert again.delegation_tokens.hmac(token.token_id) == token.hmac


@enabled
@pytest.mark.parametrize("kind", ["Group", ""])
def test_no_token_stands_for_what_is_no_user(kind: str, ask: Ask) -> None:
    """Who logs in with it would be a user of that name, whom the right to make it isn't about."""
    request = CreateDelegationTokenRequest(owner_principal_type=kind, owner_principal_name="bob", max_lifetime_ms=-1)
    assert ask(request, **by_sasl()).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
