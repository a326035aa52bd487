"""SaslAuthenticate: refused, as all listeners are PLAINTEXT; the client is misconfigured."""

from __future__ import annotations

from kohort.broker.context import Context
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """Returns ILLEGAL_SASL_STATE, as Kafka does on a PLAINTEXT listener."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
