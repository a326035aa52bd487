"""Connections that have to say who they are, and what comes of it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Final, TypeVar

from kohort.broker.audit import Audit
from kohort.broker.reply import BadRequestError, Reply
from kohort.broker.session import Session
from kohort.protocol.messages import API_NAMES
from kohort.security.sasl.authenticator import Answer, Authenticator, IllegalStateError
from kohort.security.sasl.exchange import AuthenticationFailedError

T = TypeVar("T")

_SIZE: Final = struct.Struct(">i")

OPEN_TO_ALL: Final = frozenset(
    key for key, name in API_NAMES.items() if name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
)
"""The APIs that are answered before it is known who asks."""


def evaluate(session: Session, authenticator: Authenticator, token: bytes, now: int, audit: Audit) -> Answer:
    """Takes a client's token; sets who it is once that is known.

    Raises:
        AuthenticationFailedError, IllegalStateError: nothing more is answered.
    """
    told = bool(authenticator.refused)
    try:
        answer = authenticator.evaluate(token, now)
    except AuthenticationFailedError as error:
        if not told:
            audit.authentication_failed(session.host, session.port, authenticator.mechanism, error)
        raise
    if authenticator.refused:
        reason = AuthenticationFailedError(authenticator.refused)
        audit.authentication_failed(session.host, session.port, authenticator.mechanism, reason)
    if authenticator.done:
        session.principal = f"User:{authenticator.name}"
        session.by_token = authenticator.by_token
        audit.authenticated(authenticator.mechanism)
        if session.on_known is not None:
            session.on_known()
            session.on_known = None
    return answer


def later(session: Session, authenticator: Authenticator, refusal: T) -> Reply[T]:
    """Answers with a refusal after a while, and closes the connection then."""
    session.ends = True
    reply: Reply[T] = Reply()
    asyncio.get_running_loop().call_later(authenticator.settings.failed_delay_ms / 1000, reply, refusal)
    return reply


def answer_raw(
    session: Session,
    authenticator: Authenticator,
    token: bytes,
    now: int,
    audit: Audit,
    send: Callable[[bytes], None],
    done: Callable[[BadRequestError], None],
) -> bool:
    """Answers a token that comes without a header (SaslHandshake version 0); there is no answer to a wrong one.

    Returns:
        Whether it is answered; otherwise `done` is called after a while.
    """
    try:
        answer = evaluate(session, authenticator, token, now, audit)
    except (AuthenticationFailedError, IllegalStateError) as error:
        reason = BadRequestError(f"authentication failed: {error}")
        asyncio.get_running_loop().call_later(authenticator.settings.failed_delay_ms / 1000, done, reason)
        return False
    send(_SIZE.pack(len(answer.token)) + answer.token)
    return True


def refusal(authenticator: Authenticator, key: int, now: int) -> str | None:
    """Why a request isn't answered; None if it is.

    Args:
        key: of its API.
        now: ms since 1970.
    """
    if authenticator.done and not authenticator.expired(now):
        return None
    if key in OPEN_TO_ALL:
        return None
    return "the session has ended" if authenticator.done else "who asks isn't known yet"
