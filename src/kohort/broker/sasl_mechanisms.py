"""The SASL mechanisms of a listener, by its settings."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings
from kohort.security.sasl.authenticator import MakeExchange, SaslSettings
from kohort.security.sasl.jaas import LoginModule, parse_jaas
from kohort.security.sasl.plain import PlainExchange
from kohort.security.sasl.scram import ScramCredential, ScramExchange, ScramMechanism, Shape, TokenCredential

if TYPE_CHECKING:
    from kohort.broker.oauthbearer import SignedTokens

FindToken = Callable[[ScramMechanism, str], TokenCredential | None]
"""Finds what is known of a delegation token by its id; None if there is no such token, or it has expired."""

FindUser = Callable[[ScramMechanism, str], ScramCredential | None]
"""Finds what is known of a user; None if there is no such user."""

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
"""The login module of each mechanism that is served."""


class SaslSources(NamedTuple):
    """Where mechanisms have from what isn't configured.

    Attributes:
        find_user, find_token: SCRAM's credentials.
        secret, shape: see `ScramExchange`.
        now: ms since 1970.
    """

    find_user: FindUser
    find_token: FindToken
    secret: Callable[[], bytes]
    shape: Callable[[ScramMechanism], Shape]
    now: Callable[[], int]


class Sasl(NamedTuple):
    """The mechanisms of a listener.

    Attributes:
        settings: what its connections authenticate by.
        signed_tokens: of OAUTHBEARER; its keys have to be kept up to date. None without that mechanism.
    """

    settings: SaslSettings
    signed_tokens: SignedTokens | None


def sasl_mechanisms(settings: Settings, listener: str, sources: SaslSources) -> Sasl:
    """Returns what the connections of a listener authenticate by.

    Raises:
        ConfigError: a mechanism can't be had as it is configured.
    """
    own = settings.for_listener(listener)
    mechanisms: dict[str, MakeExchange] = {}
    max_reauth_ms: dict[str, int] = {}
    signed_tokens = None
    for name in own.names("sasl.enabled.mechanisms"):
        where = f"listener {listener}, sasl.enabled.mechanisms ({own.source_of('sasl.enabled.mechanisms')})"
        if name not in _MODULES:
            raise ConfigError(f"{where}: {name} isn't served; there are {', '.join(_MODULES)}")
        of_mechanism = settings.for_listener(listener, name)
        module = _login_module(of_mechanism, listener, name)
        if name == "PLAIN":
            mechanisms[name] = functools.partial(PlainExchange, _passwords(module, listener))
        elif name == "OAUTHBEARER":
            from kohort.broker.oauthbearer import SignedTokens  # what HTTP needs takes long to load

            signed_tokens = SignedTokens(of_mechanism, listener, module, sources.now)
            mechanisms[name] = signed_tokens.exchange
        else:
            mechanisms[name] = _scram(ScramMechanism(name), sources)
        max_reauth_ms[name] = of_mechanism.int("connections.max.reauth.ms")
    if not mechanisms:
        raise ConfigError(f"listener {listener}: sasl.enabled.mechanisms is empty, so nobody could authenticate")
    of_connections = SaslSettings(
        mechanisms,
        max_reauth_ms,
        own.int("sasl.server.max.receive.size"),
        own.int("connection.failed.authentication.delay.ms"),
    )
    return Sasl(of_connections, signed_tokens)


def _login_module(settings: Settings, listener: str, mechanism: str) -> LoginModule | None:
    """The login module that is configured; one of another mechanism is a mistake."""
    text = settings.text("sasl.jaas.config")
    if not text:
        return None
    module = parse_jaas(text)
    if module.name != _MODULES[mechanism]:
        raise ConfigError(
            f"listener {listener}: {mechanism} needs {_MODULES[mechanism]}, but sasl.jaas.config "
            f"({settings.source_of('sasl.jaas.config')}) has {module.name}"
        )
    return module


def _passwords(module: LoginModule | None, listener: str) -> dict[str, str]:
    passwords = {} if module is None else module.passwords()
    if not passwords:
        raise ConfigError(
            f"listener {listener}: PLAIN has no users; listener.name.{listener.lower()}.plain.sasl.jaas.config="
            f'{_MODULES["PLAIN"]} required user_alice="PASSWORD"; makes one'
        )
    return passwords


def _scram(mechanism: ScramMechanism, sources: SaslSources) -> MakeExchange:
    find_user = functools.partial(sources.find_user, mechanism)
    find_token = functools.partial(sources.find_token, mechanism)
    shape = functools.partial(sources.shape, mechanism)
    return lambda: ScramExchange(mechanism, find_user, secrets.token_urlsafe, sources.secret(), find_token, shape)
