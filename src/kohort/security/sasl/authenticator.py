"""Who a connection is, and what it may ask before that is known: SASL as Kafka frames it (KIP-43, KIP-152, KIP-368).

A connection of a SASL listener says by which mechanism it authenticates (SaslHandshake), and exchanges tokens with it:
in SaslAuthenticate, or after a handshake of version 0 as they are. Until it is done, no other API is answered. It may
authenticate again at any time, as the same and by the same mechanism; and it has to before its session ends.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kohort.security.sasl.exchange import AuthenticationFailedError, Exchange

MakeExchange = Callable[[], Exchange]


class State(enum.Enum):
    """Of a connection's authentication."""

    BEGIN = "no handshake yet"
    TOKENS = "tokens are exchanged, in SaslAuthenticate"
    RAW_TOKENS = "tokens are exchanged, without a header"
    DONE = "it is known who it is"
    AGAIN = "tokens are exchanged again"
    FAILED = "nothing more is answered"


class IllegalStateError(Exception):
    """Something that doesn't come now: ILLEGAL_SASL_STATE."""


class UnsupportedMechanismError(Exception):
    """A mechanism that isn't enabled: UNSUPPORTED_SASL_MECHANISM."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a token.

    Attributes:
        token: for the client.
        lifetime_ms: how long the session lasts from now on, 0 if it doesn't end; in the answer that ends an exchange.
    """

    token: bytes
    lifetime_ms: int = 0


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """What all connections of a listener authenticate by.

    Attributes:
        mechanisms: makes an exchange, by the name of each mechanism that is enabled.
        max_reauth_ms: by mechanism: how long a session lasts (`connections.max.reauth.ms`); for ever if it isn't there.
        max_receive_bytes: the largest request before it is known who asks (`sasl.server.max.receive.size`).
        failed_delay_ms: how long a refusal is held back, so that guessing takes time
            (`connection.failed.authentication.delay.ms`).
    """

    mechanisms: Mapping[str, MakeExchange]
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    max_receive_bytes: int = 524_288
    failed_delay_ms: int = 100


class Authenticator:
    """The authentication of one connection.

    Attributes:
        settings: of its listener.
        state: see `State`.
        name: of the client, None until it is known.
        by_token: whether it has authenticated by a delegation token.
        expires_at: when the session ends, in ms; None if it doesn't.
    """

    def __init__(self, settings: SaslSettings) -> None:
        self.settings = settings
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self.state = State.BEGIN
        self.name: str | None = None
        self.by_token = False
        self.expires_at: int | None = None

    @property
    def mechanisms(self) -> list[str]:
        """Those that are enabled."""
        return list(self.settings.mechanisms)

    @property
    def mechanism(self) -> str:
        """The one of the last exchange that has begun; "" before."""
        return self._mechanism

    @property
    def done(self) -> bool:
        """Whether other APIs are answered."""
        return self.state is State.DONE

    @property
    def refused(self) -> str:
        """Why the client has been refused by an answer; "" if it hasn't. The exchange fails at its next token."""
        return "" if self._exchange is None else self._exchange.refused

    def expired(self, now: int) -> bool:
        """Whether the session has ended; the client may still authenticate again."""
        return self.expires_at is not None and now >= self.expires_at

    def shake(self, mechanism: str, *, raw: bool) -> None:
        """Begins an exchange.

        Args:
            raw: whether tokens come without headers (SaslHandshake version 0).

        Raises:
            UnsupportedMechanismError: it isn't enabled, or another than before; nothing more is answered.
            IllegalStateError: it doesn't come now.
        """
        again = self.state is State.DONE
        if self.state is not State.BEGIN and not (again and not raw):
            self.state = State.FAILED
            raise IllegalStateError
        make = self.settings.mechanisms.get(mechanism)
        if make is None or (again and mechanism != self._mechanism):
            self.state = State.FAILED
            raise UnsupportedMechanismError
        self._mechanism = mechanism
        self._exchange = make()
        self.state = State.AGAIN if again else State.RAW_TOKENS if raw else State.TOKENS

    def evaluate(self, token: bytes, now: int) -> Answer:
        """Takes the client's next token.

        Raises:
            AuthenticationFailedError: nothing more is answered.
            IllegalStateError: no token comes now.
        """
        again = self.state is State.AGAIN
        exchange = self._exchange
        if exchange is None or self.state not in _EXCHANGING:
            self.state = State.FAILED
            raise IllegalStateError
        try:
            answer = exchange.evaluate(token)
            if exchange.name is None:
                return Answer(answer)
            if again and exchange.name != self.name:
                raise AuthenticationFailedError(
                    f"Cannot change principals during re-authentication from {self.name} to another"
                )
        except AuthenticationFailedError:
            self.state = State.FAILED
            raise
        self.name = exchange.name
        self.by_token = exchange.by_token
        self._exchange = None
        self.state = State.DONE
        lifetime = self._lifetime(exchange, now)
        self.expires_at = None if lifetime is None else now + lifetime
        return Answer(answer, lifetime or 0)

    def _lifetime(self, exchange: Exchange, now: int) -> int | None:
        """How long the session lasts, in ms; None if it doesn't end."""
        max_reauth = self.settings.max_reauth_ms.get(self._mechanism, 0)
        limits = [max_reauth] if max_reauth > 0 else []
        if exchange.expires_at is not None:
            limits.append(max(exchange.expires_at - now, 0))  # 0 where the clock's skew alone lets it in
        return min(limits, default=None)


_EXCHANGING: Final = frozenset({State.TOKENS, State.RAW_TOKENS, State.AGAIN})
