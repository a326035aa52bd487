"""PLAIN (RFC 4616): the client sends its name and password."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from kohort.security.sasl.exchange import AuthenticationFailedError

_PARTS: Final = 3

_NOBODY: Final = "\0"  # no password, as it can't be sent


class PlainExchange:
    """An exchange with one client.

    Args:
        passwords: by name.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.name: str | None = None
        self.by_token = False
        self.expires_at: int | None = None
        self.refused = ""

    def evaluate(self, token: bytes) -> bytes:
        """Takes `[authzid] NUL name NUL password`; see `Exchange.evaluate`."""
        try:
            parts = token.decode().split("\0", _PARTS)
        except UnicodeDecodeError:
            raise AuthenticationFailedError("Invalid SASL/PLAIN response: it isn't UTF-8") from None
        if len(parts) != _PARTS:
            raise AuthenticationFailedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {token.count(0) + 1}")
        wanted, name, password = parts
        if not name or not password:
            raise AuthenticationFailedError(
                f"Authentication failed: {'password' if name else 'username'} not specified"
            )
        # As long for names that nobody has.
        known = self._passwords.get(name, _NOBODY)
        if not hmac.compare_digest(known.encode(), password.encode()):
            raise AuthenticationFailedError("Authentication failed: Invalid username or password")
        if wanted not in ("", name):
            raise AuthenticationFailedError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.name = name
        return b""
