"""SaslAuthenticate: refused, as all listeners are PLAINTEXT; the client is misconfigured."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

SERVED: Final = Served(SaslAuthenticateRequest, versions=(0, 2))


def handle(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """Returns ILLEGAL_SASL_STATE, as Kafka does on a PLAINTEXT listener."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
