"""SaslHandshake: API 17."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import array, int16, string


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    """Opens SASL authentication: the client names the mechanism it wants.

    - v1: no change on the wire: tokens then travel in SaslAuthenticate requests, not bare
    """

    mechanism: str = string("Name of the mechanism, such as PLAIN or SCRAM-SHA-256.")


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    """Accepts the mechanism, or says which others the broker would take."""

    error_code: int = int16("0, or the error that failed the whole request.")
    mechanisms: tuple[str, ...] = array(string, "Names of the mechanisms that the broker accepts here.")
