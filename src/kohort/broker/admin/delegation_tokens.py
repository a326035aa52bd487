"""Who may ask for delegation tokens at all."""

from __future__ import annotations

from kohort.broker.config.listeners import SecurityProtocol
from kohort.broker.context import Context
from kohort.broker.listener import ANONYMOUS
from kohort.protocol.errors import ErrorCode, KafkaError


def check_request(context: Context) -> None:
    """Raises KafkaError for a client that can't ask: by PLAINTEXT, by TLS without a certificate, or with a token."""
    session = context.session
    nameless = session.protocol is SecurityProtocol.SSL and session.principal == ANONYMOUS
    if session.by_token or nameless or session.protocol is SecurityProtocol.PLAINTEXT:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_enabled(context: Context) -> None:
    """Raises KafkaError where the broker has no secret for tokens."""
    if not context.broker.delegation_tokens.enabled:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
