"""RenewDelegationToken: lets a token live on (KIP-48)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import check_enabled, check_request
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

SERVED: Final = Served(RenewDelegationTokenRequest, versions=(1, 2))


def handle(request: RenewDelegationTokenRequest, context: Context) -> RenewDelegationTokenResponse:
    """Renews a token of the client's, or one that it may renew."""
    try:
        check_request(context)
        check_enabled(context)
        expires_at = context.broker.delegation_tokens.renew(
            bytes(request.hmac), context.session.principal, request.renew_period_ms, context.now
        )
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at)
