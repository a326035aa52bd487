"""Authentication by SASL, as Kafka frames it: PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677), OAUTHBEARER (RFC 7628).

Names and passwords are taken as their UTF-8 bytes. RFC 5802 would have them normalised first (SASLprep), but Kafka's
brokers and tools don't do that when they store credentials, so nobody could log in with what it changes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final, Protocol, TypeVar

from kohort.client.config import ClientConfig
from kohort.client.errors import AuthenticationError, ConfigError, ConnectionLostError
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["Exchange", "ScramError", "TokenRefusedError", "authenticate", "oauthbearer", "plain", "scram"]

R = TypeVar("R", bound=Response)

Exchange = Generator[bytes, bytes, None]
"""A mechanism without I/O: yields tokens to send, is sent the broker's, and returns when authentication succeeded."""

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_ITERATIONS: Final = range(4096, 1_000_001)
"""Fewer make guessing too easy (Kafka refuses them, too); more would waste our processor time."""


class ScramError(ValueError):
    """An invalid message of the broker: it may not know the password."""


class TokenRefusedError(ValueError):
    """The broker doesn't take a token, and should have said so by an error."""


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


def oauthbearer(token: str, extensions: Iterable[tuple[str, str]] = ()) -> Exchange:
    """OAUTHBEARER: sends a token that was made for us; who has it can log in with it, so it needs TLS.

    Args:
        extensions: more to tell the broker, as names and values.

    Raises:
        TokenRefusedError: see there.
    """
    pairs = "".join(f"{name}={value}\x01" for name, value in extensions)
    refusal = yield f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
    if refusal:
        yield b"\x01"  # the broker's error is the answer to it
        raise TokenRefusedError(f"the token is refused: {refusal.decode(errors='replace')[:500]}")


async def authenticate(
    broker: Broker, ask: _Ask, config: ClientConfig, begins: Callable[[], None] = lambda: None
) -> int:
    """Authenticates with the configured mechanism.

    Args:
        begins: called before the first request, when there is a token, which may take a while to get.

    Returns:
        the session lifetime in ms, after which the broker wants it again; 0 for none.

    Raises:
        AuthenticationError: either side refuses the other, the mechanism isn't enabled, or there is no token.
        ConnectionLostError: the connection breaks, or that to who issues tokens.
    """
    mechanism = config.sasl_mechanism
    exchange = await _exchange(broker, config)
    begins()
    shaken = await ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(shaken.mechanisms) or "none"
        raise AuthenticationError(f"{broker}: it doesn't take sasl_mechanism={mechanism}, but {offered}")
    if shaken.error_code:
        raise AuthenticationError(
            f"{broker}: no authentication on this port (error {shaken.error_code}): is security_protocol right?"
        )
    token, lifetime_ms = next(exchange), 0
    while True:
        answer = await ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if answer.error_code:
            wrong = "the token" if mechanism == "OAUTHBEARER" else "user name or password"
            detail = answer.error_message or f"{wrong} is wrong"
            raise AuthenticationError(f"{broker}: {detail}")
        lifetime_ms = answer.session_lifetime_ms
        try:
            token = exchange.send(answer.auth_bytes)
        except StopIteration:
            return lifetime_ms
        except (ScramError, TokenRefusedError) as error:
            raise AuthenticationError(f"{broker}: {error}") from error


async def _exchange(broker: Broker, config: ClientConfig) -> Exchange:
    """The exchange of the configured mechanism; OAUTHBEARER gets its token before."""
    if config.sasl_mechanism == "OAUTHBEARER":
        from kohort.client.tokens import TokenError, bearer_token

        try:
            return oauthbearer(await bearer_token(config), config.sasl_extension_pairs)
        except TokenError as error:
            kind = ConnectionLostError if error.passes else AuthenticationError
            raise kind(f"{broker}: no token to log in with: {error}") from error
    username, password = config.sasl_username or "", config.sasl_password or ""
    if config.sasl_mechanism == "PLAIN":
        return plain(username, password)
    return scram(config.sasl_mechanism, username, password)


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
