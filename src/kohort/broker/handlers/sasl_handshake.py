"""SaslHandshake: refused, as all listeners are PLAINTEXT; the client is misconfigured."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SERVED: Final = Served(SaslHandshakeRequest, versions=(0, 1))


def handle(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Returns ILLEGAL_SASL_STATE, as Kafka does on a PLAINTEXT listener."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
