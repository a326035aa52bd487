"""CreateDelegationToken: makes a token that a client can log in with (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import check_enabled, check_request
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.delegation_tokens import DelegationToken
from kohort.broker.handlers import ONE_STEP, Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

SERVED: Final = Served(CreateDelegationTokenRequest, versions=(1, 3), max_items=ONE_STEP)

WITH_REQUESTER: Final = 3
"""First version with tokens for others: the response names who asked."""


def handle(request: CreateDelegationTokenRequest, context: Context) -> CreateDelegationTokenResponse:
    """Makes a token for the client, or for somebody else if it may."""
    requester = context.session.principal
    owner = (
        f"{request.owner_principal_type}:{request.owner_principal_name}" if request.owner_principal_name else requester
    )
    owner_type, _, owner_name = owner.partition(":")
    asked_by = requester if context.version >= WITH_REQUESTER else ""
    requester_type, _, requester_name = asked_by.partition(":")
    response = CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    try:
        token = _create(request, context, owner)
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms = token.issued_at
    response.expiry_timestamp_ms = token.expires_at
    response.max_timestamp_ms = token.max_at
    response.token_id = token.id
    response.hmac = context.broker.delegation_tokens.hmac(token.id)
    return response


def _create(request: CreateDelegationTokenRequest, context: Context, owner: str) -> DelegationToken:
    check_request(context)
    requester = context.session.principal
    if owner != requester and not context.allowed(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    check_enabled(context)
    # Whoever logs in with a token is a user, whatever else its owner was said to be.
    if not owner.startswith("User:") or any(renewer.principal_type != "User" for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers]
    return context.broker.delegation_tokens.create(owner, requester, renewers, request.max_lifetime_ms, context.now)
