"""CreateDelegationToken: refused, as by a Kafka broker that has no secret for tokens (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import refusal
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

SERVED: Final = Served(CreateDelegationTokenRequest, versions=(1, 3))

WITH_REQUESTER: Final = 3
"""First version with tokens for others: the response names who asked."""


def handle(request: CreateDelegationTokenRequest, context: Context) -> CreateDelegationTokenResponse:
    """Names the owner and who asked, without a token."""
    requester = context.session.principal
    owner = (
        f"{request.owner_principal_type}:{request.owner_principal_name}" if request.owner_principal_name else requester
    )
    error = refusal(context.session)
    if error != ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        if owner != requester and not context.allowed(Operation.CREATE_TOKENS, ResourceType.USER, owner):
            error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        elif any(renewer.principal_type != "User" for renewer in request.renewers):
            error = ErrorCode.INVALID_PRINCIPAL_TYPE
    owner_type, _, owner_name = owner.partition(":")
    asked_by = requester if context.version >= WITH_REQUESTER else ""
    requester_type, _, requester_name = asked_by.partition(":")
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
