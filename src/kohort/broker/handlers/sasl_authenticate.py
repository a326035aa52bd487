"""SaslAuthenticate: the tokens by which a client says who it is, and does so again in time (KIP-152, KIP-368)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authentication import evaluate, later
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.security.sasl.authenticator import IllegalStateError
from kohort.security.sasl.exchange import AuthenticationFailedError

SERVED: Final = Served(SaslAuthenticateRequest, versions=(0, 2))


def handle(
    request: SaslAuthenticateRequest, context: Context
) -> SaslAuthenticateResponse | Reply[SaslAuthenticateResponse]:
    """Passes a token on; ILLEGAL_SASL_STATE on a listener without authentication."""
    session = context.session
    if session.authenticator is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    try:
        answer = evaluate(session, session.authenticator, request.auth_bytes, context.now, context.broker.audit)
    except IllegalStateError:
        detail = "SaslAuthenticate request received after successful authentication"
        return later(
            session,
            session.authenticator,
            SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=detail),
        )
    except AuthenticationFailedError as error:
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return later(
            session, session.authenticator, SaslAuthenticateResponse(error_code=code, error_message=str(error))
        )
    return SaslAuthenticateResponse(error_message=None, auth_bytes=answer.token, session_lifetime_ms=answer.lifetime_ms)
