"""CreateDelegationToken: refused, in the order of Kafka's checks."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.broker.handlers.conftest import Ask, Deny

Renewer = CreateDelegationTokenRequest.Renewer


@pytest.mark.parametrize("version", [1, 2, 3])
def test_names_who_asked(version: int, ask: Ask) -> None:
    response = ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), version, principal="User:alice")
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    if version >= 3:
        assert (response.token_requester_principal_type, response.token_requester_principal_name) == ("User", "alice")
    assert (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms) == (-1, -1, -1)


def test_who_has_no_name_gets_no_token(ask: Ask) -> None:
    request = CreateDelegationTokenRequest(renewers=[Renewer(principal_type="Group", principal_name="g")])
    assert ask(request).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_token_for_another_needs_a_right(ask: Ask, deny: Deny) -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")
    response = ask(request, principal="User:alice")
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (response.principal_name, response.token_requester_principal_name) == ("bob", "alice")
    deny(Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    assert ask(request, principal="User:alice").error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert ask(request, principal="User:bob").error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_only_users_renew(ask: Ask) -> None:
    request = CreateDelegationTokenRequest(renewers=[Renewer(principal_type="Group", principal_name="g")])
    assert ask(request, principal="User:alice").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
