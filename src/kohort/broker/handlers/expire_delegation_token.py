"""ExpireDelegationToken: lets a token end, now or later (KIP-48)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import check_enabled, check_request
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

SERVED: Final = Served(ExpireDelegationTokenRequest, versions=(1, 2))


def handle(request: ExpireDelegationTokenRequest, context: Context) -> ExpireDelegationTokenResponse:
    """Changes when a token expires, or removes it."""
    try:
        check_request(context)
        check_enabled(context)
        expires_at = context.broker.delegation_tokens.expire(
            bytes(request.hmac), context.session.principal, request.expiry_time_period_ms, context.now
        )
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at)
