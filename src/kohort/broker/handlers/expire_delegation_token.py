"""ExpireDelegationToken: refused, as by a Kafka broker that has no secret for tokens (KIP-48)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import refusal
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

SERVED: Final = Served(ExpireDelegationTokenRequest, versions=(1, 2))


def handle(request: ExpireDelegationTokenRequest, context: Context) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=refusal(context.session), expiry_timestamp_ms=-1)
