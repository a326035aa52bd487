"""DescribeDelegationToken: one's own tokens, those one may renew, and others' by rights."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.delegation_tokens import ENABLED, by_sasl, create, nobodys

enabled = pytest.mark.parametrize("settings", [ENABLED])
Owner = DescribeDelegationTokenRequest.Owner


def described(ask: Ask, who: str, *owners: str) -> list[str]:
    """The owners of the tokens that are described; of all that are visible if none is named."""
    wanted = [Owner(principal_type="User", principal_name=name) for name in owners] if owners else None
    response = ask(DescribeDelegationTokenRequest(owners=wanted), **by_sasl(who))
    assert response.error_code == 0
    return sorted(token.principal_name for token in response.tokens)


@enabled
@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_of_a_token(version: int, ask: Ask) -> None:
    made = create(ask, "User:alice", "bob", now=5)
    (token,) = ask(DescribeDelegationTokenRequest(owners=None), version, **by_sasl()).tokens
    assert (token.token_id, token.hmac, token.principal_name) == (made.token_id, made.hmac, "alice")
    assert (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp) == (5, 105, 1005)
    assert [(each.principal_type, each.principal_name) for each in token.renewers] == [("User", "bob")]
    if version >= 3:
        assert token.token_requester_principal_name == "alice"


@enabled
def test_who_sees_which(ask: Ask, deny: Deny) -> None:
    create(ask, "User:alice", "bob")
    create(ask, "User:bob")
    create(ask, "User:carol")
    assert described(ask, "User:dave") == ["alice", "bob", "carol"]
    deny(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
    assert described(ask, "User:dave") == ["alice", "bob", "carol"]
    deny(Operation.DESCRIBE_TOKENS, ResourceType.USER)
    assert described(ask, "User:bob") == ["alice", "bob"]
    assert described(ask, "User:carol", "alice", "carol") == ["carol"]
    assert described(ask, "User:dave") == []


@enabled
def test_what_is_not_asked_for_by_name_is_no_denial(ask: Ask, deny: Deny, broker: Broker) -> None:
    create(ask, "User:alice")
    deny(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
    deny(Operation.DESCRIBE_TOKENS, ResourceType.USER)
    assert described(ask, "User:dave") == []
    assert not broker.audit.denials
    assert described(ask, "User:dave", "alice") == []
    assert broker.audit.denials.total() == 1


@enabled
def test_no_owners_no_tokens(ask: Ask) -> None:
    create(ask)
    assert ask(DescribeDelegationTokenRequest(owners=[]), **by_sasl()).tokens == []


def test_without_a_secret_there_are_none(ask: Ask) -> None:
    response = ask(DescribeDelegationTokenRequest(owners=None), **by_sasl())
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@enabled
@pytest.mark.parametrize("session", nobodys(), ids=["plain text", "no certificate", "by token"])
def test_who_may_not_ask(session: dict[str, Any], ask: Ask) -> None:
    response = ask(DescribeDelegationTokenRequest(owners=None), **session)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
