"""DescribeDelegationToken: refused, as by a Kafka broker that has no secret for tokens (KIP-48)."""

from __future__ import annotations

from typing import Final

from kohort.broker.admin.delegation_tokens import refusal
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

SERVED: Final = Served(DescribeDelegationTokenRequest, versions=(1, 3))


def handle(request: DescribeDelegationTokenRequest, context: Context) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=refusal(context.session))
