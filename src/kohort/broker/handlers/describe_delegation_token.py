"""DescribeDelegationToken: the tokens that a client may know of, with their secrets (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import check_enabled, check_request
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.delegation_tokens import DelegationToken
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

SERVED: Final = Served(DescribeDelegationTokenRequest, versions=(1, 3), max_items=ONE_STEP)

WITH_REQUESTER: Final = 3
"""First version whose response names who asked for a token."""

Token = DescribeDelegationTokenResponse.Token


def handle(request: DescribeDelegationTokenRequest, context: Context) -> Slices[DescribeDelegationTokenResponse]:
    """Describes the tokens of owners, or all if they are null. O(tokens), and the owners that are asked for."""
    try:
        check_request(context)
        check_enabled(context)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    owners = None if request.owners is None else {f"{o.principal_type}:{o.principal_name}" for o in request.owners}
    tokens = []
    for token in list(context.broker.delegation_tokens):
        if (owners is None or not owners.isdisjoint(_concerned(token))) and _visible(
            token, context, named=owners is not None
        ):
            tokens.append(_described(token, context))
        yield
    return DescribeDelegationTokenResponse(tokens=tokens)


def _concerned(token: DelegationToken) -> tuple[str, ...]:
    return token.owner, token.requester, *token.renewers


def _visible(token: DelegationToken, context: Context, *, named: bool) -> bool:
    return (
        token.concerns(context.session.principal)
        or context.allowed(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id, audited=False)
        or context.allowed(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, audited=named)
    )


def _described(token: DelegationToken, context: Context) -> Token:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    shown = context.version >= WITH_REQUESTER
    return Token(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type if shown else "",
        token_requester_principal_name=requester_name if shown else "",
        issue_timestamp=token.issued_at,
        expiry_timestamp=token.expires_at,
        max_timestamp=token.max_at,
        token_id=token.id,
        hmac=context.broker.delegation_tokens.hmac(token.id),
        renewers=[
            Token.Renewer(principal_type=kind, principal_name=name)
            for kind, _, name in (renewer.partition(":") for renewer in token.renewers)
        ],
    )
