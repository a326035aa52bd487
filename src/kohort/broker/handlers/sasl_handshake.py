"""SaslHandshake: refused, as all listeners are PLAINTEXT; the client is misconfigured."""

from __future__ import annotations

from kohort.broker.context import Context
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Returns ILLEGAL_SASL_STATE, as Kafka does on a PLAINTEXT listener."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
