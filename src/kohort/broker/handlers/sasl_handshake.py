"""SaslHandshake: a client says by which mechanism it authenticates (KIP-43)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authentication import later
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode, shown
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kohort.security.sasl.authenticator import IllegalStateError, UnsupportedMechanismError

SERVED: Final = Served(SaslHandshakeRequest, versions=(0, 1))

WITH_HEADERS: Final = 1
"""First version after which tokens come in SaslAuthenticate; before, they come as they are."""


def handle(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse | Reply[SaslHandshakeResponse]:
    """Begins an exchange; ILLEGAL_SASL_STATE on a listener without authentication."""
    authenticator = context.session.authenticator
    if authenticator is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = tuple(authenticator.mechanisms)
    try:
        authenticator.shake(request.mechanism, raw=context.version < WITH_HEADERS)
    except UnsupportedMechanismError:
        reason = f"the mechanism {shown(request.mechanism)} isn't enabled, or another than before"
        session = context.session
        context.broker.audit.authentication_failed(session.host, session.port, "unknown", reason)
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return later(context.session, authenticator, SaslHandshakeResponse(error_code=code, mechanisms=mechanisms))
    except IllegalStateError:
        return later(context.session, authenticator, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
    return SaslHandshakeResponse(mechanisms=mechanisms)
