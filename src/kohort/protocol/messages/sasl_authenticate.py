"""SaslAuthenticate: API 36."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import bytes_, int16, int64, string


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible=2):
    """Carries one client token of a SASL exchange, once the mechanism is agreed on.

    - v1: same layout; the client can re-authenticate on the same connection
    - v2: flexible
    """

    auth_bytes: bytes = bytes_("The client's next token; its form is up to the mechanism.")


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible=2):
    """Carries one broker token of a SASL exchange, and at last the session's lifetime.

    - v1: SessionLifetimeMs
    - v2: flexible
    """

    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    auth_bytes: bytes = bytes_("The broker's next token; its form is up to the mechanism.")
    session_lifetime_ms: int = int64(
        "How long until the client must authenticate again, in ms; 0 = never.", since=1, ignorable=True
    )
