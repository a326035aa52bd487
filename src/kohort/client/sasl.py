"""Authentication by name and password: SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677), as Kafka frames them.

Names and passwords are taken as their UTF-8 bytes. RFC 5802 would have them normalised first (SASLprep), but Kafka's
brokers and tools don't do that when they store credentials, so nobody could log in with what it changes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Generator
from typing import Final, Protocol, TypeVar

from kohort.client.config import ClientConfig
from kohort.client.errors import AuthenticationError, ConfigError
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["Exchange", "ScramError", "authenticate", "plain", "scram"]

R = TypeVar("R", bound=Response)

Exchange = Generator[bytes, bytes, None]
"""A mechanism without I/O: yields tokens to send, is sent the broker's, and returns when authentication succeeded."""

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_ITERATIONS: Final = range(4096, 1_000_001)
"""Fewer make guessing too easy (Kafka refuses them, too); more would waste our processor time."""


class ScramError(ValueError):
    """An invalid message of the broker: it may not know the password."""


class _Ask(Protocol):
    """Sends a request before those that are held back meanwhile."""

    def __call__(self, request: Request, response: type[R], /) -> Awaitable[R]: ...


def plain(username: str, password: str) -> Exchange:
    """PLAIN: sends the password itself, so it needs TLS.

    Raises:
        ConfigError: a name or password with a NUL, which PLAIN can't have.
    """
    if "\0" in username or "\0" in password:
        raise ConfigError("sasl_username and sasl_password can't have NUL characters with PLAIN")
    yield f"\0{username}\0{password}".encode()


def scram(
    mechanism: str, username: str, password: str, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24)
) -> Exchange:
    """SCRAM: proves that we know the password without sending it, and that the broker knows it.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        username, password: credentials.
        nonce: returns a random nonce; tests pass their own.

    Raises:
        ScramError: the broker's messages aren't SCRAM's, or its signature is wrong.
    """
    name = _HASHES[mechanism]
    mine = nonce()
    first = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={mine}"
    server_first = _text((yield f"n,,{first}".encode()))
    fields = _fields(server_first)
    theirs, salt, rounds = fields.get("r", ""), _bytes(fields.get("s", "")), fields.get("i", "")
    if not theirs.startswith(mine) or theirs == mine:
        raise ScramError("the broker's nonce doesn't go on from ours")
    if not (rounds.isascii() and rounds.isdigit() and len(rounds) < 9 and int(rounds) in _ITERATIONS):
        raise ScramError(f"{rounds or 'no'} iterations; they should be {_ITERATIONS[0]} to {_ITERATIONS[-1]}")
    if not salt:
        raise ScramError("the broker sent no salt")
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, int(rounds))
    last = f"c={base64.b64encode(b'n,,').decode()},r={theirs}"
    signed = f"{first},{server_first},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    fields = _fields(_text((yield f"{last},p={base64.b64encode(proof).decode()}".encode())))
    if "e" in fields:
        raise ScramError(f"the broker says {fields['e']!r}")
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(_bytes(fields.get("v", "")), expected):
        raise ScramError("the broker's signature is wrong: it doesn't know the password, so it isn't who it should be")


async def authenticate(broker: Broker, ask: _Ask, config: ClientConfig) -> int:
    """Authenticates with the configured mechanism.

    Returns:
        the session lifetime in ms, after which the broker wants it again; 0 for none.

    Raises:
        AuthenticationError: either side refuses the other, or the mechanism isn't enabled.
        ConnectionLostError: the connection breaks.
    """
    mechanism = config.sasl_mechanism
    shaken = await ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(shaken.mechanisms) or "none"
        raise AuthenticationError(f"{broker}: it doesn't take sasl_mechanism={mechanism}, but {offered}")
    if shaken.error_code:
        raise AuthenticationError(
            f"{broker}: no authentication on this port (error {shaken.error_code}): is security_protocol right?"
        )
    username, password = config.sasl_username or "", config.sasl_password or ""
    exchange = plain(username, password) if mechanism == "PLAIN" else scram(mechanism, username, password)
    token, lifetime_ms = next(exchange), 0
    while True:
        answer = await ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if answer.error_code:
            detail = answer.error_message or "user name or password is wrong"
            raise AuthenticationError(f"{broker}: {detail}")
        lifetime_ms = answer.session_lifetime_ms
        try:
            token = exchange.send(answer.auth_bytes)
        except StopIteration:
            return lifetime_ms
        except ScramError as error:
            raise AuthenticationError(f"{broker}: {error}") from error


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ScramError("a message that isn't text") from error


def _fields(text: str) -> dict[str, str]:
    """Returns the fields of a message such as "r=…,s=…,i=4096"."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in fields:
            raise ScramError("a message that isn't SCRAM's")
        if name == "m":
            raise ScramError("an extension that must be understood, and isn't")
        fields[name] = value
    return fields


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScramError("a field that isn't Base64") from error
