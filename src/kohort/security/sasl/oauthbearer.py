"""OAUTHBEARER (RFC 7628): the client sends a token that an authorization server has made for it.

What the token is worth is decided elsewhere (`kohort.security.signed_tokens`); here are the messages alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from kohort.security.sasl.exchange import AuthenticationFailedError

_END: Final = "\x01"
_KEY: Final = "auth"

# Possessive, so that a long message that matches nearly isn't looked through backwards.
_HEADER: Final = re.compile(r"n,(?:a=([^,\x00]++))?,")
_PAIRS: Final = re.compile(r"(?:[A-Za-z]++=[\x21-\x7E \t\r\n]++\x01)*+")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]++=*+")

_MOST_PAIRS: Final = 64
"""Key-value pairs in a message; Kafka has no limit, and clients send two or three."""

REFUSAL: Final = '{"status":"invalid_token"}'
"""The answer to a token that isn't taken, as Kafka has it: it doesn't say why."""


class InvalidTokenError(Exception):
    """A token that isn't taken; the message is for the log, and never has the token in it."""


class ValidToken(NamedTuple):
    """What a token says of its bearer.

    Attributes:
        name: whom it was made for.
        expires_at: in ms since 1970.
    """

    name: str
    expires_at: int


class FirstMessage(NamedTuple):
    """What the client begins with.

    Attributes:
        authorization_id: as whom it wants to act; "" for the one in the token.
        extensions: more that it says, by name; the broker makes nothing of it.
    """

    authorization_id: str
    token: str
    extensions: dict[str, str]


class OAuthBearerExchange:
    """An exchange with one client.

    Args:
        validate: says what a token is worth; raises InvalidTokenError.
    """

    def __init__(self, validate: Callable[[str], ValidToken]) -> None:
        self._validate = validate
        self.name: str | None = None
        self.by_token = False
        self.expires_at: int | None = None
        self.refused = ""

    def evaluate(self, token: bytes) -> bytes:
        """Takes the client's first message; see `Exchange.evaluate`.

        A token that isn't taken is answered, and the client acknowledges that before the exchange fails.
        """
        if self.refused:
            raise AuthenticationFailedError(REFUSAL)
        first = parse_first_message(token)
        try:
            valid = self._validate(first.token)
        except InvalidTokenError as error:
            self.refused = str(error)
            return REFUSAL.encode()
        if first.authorization_id not in ("", valid.name):
            raise AuthenticationFailedError(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name"
            )
        self.name, self.expires_at = valid
        return b""


def parse_first_message(message: bytes) -> FirstMessage:
    r"""Parses `n,[a=NAME],\x01auth=Bearer TOKEN\x01[NAME=VALUE\x01]…\x01`.

    Raises:
        AuthenticationFailedError: it isn't that.
    """
    text = message.decode(errors="replace")
    header, _, rest = text.partition(_END)
    known, pairs = _HEADER.fullmatch(header), rest[:-1]
    if known is None or not rest.endswith(_END) or pairs.count(_END) > _MOST_PAIRS or not _PAIRS.fullmatch(pairs):
        raise _malformed("")
    values = dict(pair.split("=", 1) for pair in pairs.split(_END)[:-1])
    if _KEY not in values:
        raise _malformed(": 'auth' not specified")
    scheme, _, token = values.pop(_KEY).partition(" ")
    token = token.lstrip(" ")
    if not _TOKEN.fullmatch(token):
        raise _malformed(": invalid 'auth' format")
    if scheme.lower() != "bearer":
        raise AuthenticationFailedError("Invalid scheme in OAUTHBEARER client first message")
    return FirstMessage(_unescaped(known[1] or ""), token, values)


def _unescaped(name: str) -> str:
    """A name without its escapes: `=2C` for a comma, `=3D` for `=`."""
    if name.count("=") > name.count("=2C") + name.count("=3D"):
        raise _malformed("")
    return name.replace("=2C", ",").replace("=3D", "=")


def _malformed(what: str) -> AuthenticationFailedError:
    return AuthenticationFailedError(f"Invalid OAUTHBEARER client first message{what}")
