"""Delegation tokens: there are none, and what clients that ask for them are told."""

from __future__ import annotations

from kohort.broker.session import Session
from kohort.protocol.errors import ErrorCode

ANONYMOUS = "User:ANONYMOUS"


def refusal(session: Session) -> ErrorCode:
    """Why a request about tokens is refused, as by a Kafka broker without a secret for tokens."""
    # Kafka refuses who comes by PLAINTEXT, or by TLS without a certificate: those have no name.
    if session.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
