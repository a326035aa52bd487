"""OAUTHBEARER of a listener: by which keys and rules the tokens of its clients are checked."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings
from kohort.broker.jwks import SCHEMES, Jwks, JwksSource
from kohort.broker.keystores import opened_store
from kohort.extras import SECURITY, MissingExtraError, require
from kohort.security.sasl.jaas import LoginModule
from kohort.security.sasl.oauthbearer import OAuthBearerExchange, ValidToken
from kohort.security.signed_tokens import TokenRules, UnknownKeyError, check_token

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_TRUSTSTORE: Final = "ssl.truststore"


class SignedTokens:
    """What the tokens of a listener's clients are checked by.

    Args:
        settings: of the listener and OAUTHBEARER.
        module: its login module, if there is one: it says whose certificates are trusted at an https URL.
        now: ms since 1970.

    Raises:
        ConfigError: there is nothing to check signatures by, or a package for it is missing.
    """

    def __init__(self, settings: Settings, listener: str, module: LoginModule | None, now: Callable[[], int]) -> None:
        url = settings.text(_URL)
        if not url:
            raise ConfigError(
                f"listener {listener}: OAUTHBEARER needs {_URL}, the keys that tokens are signed by (JWKS), as a "
                "file:, http: or https: URL; tokens without a signature aren't taken"
            )
        if urlsplit(url).scheme not in SCHEMES:
            raise ConfigError(f"listener {listener}: {_URL}={url} ({settings.source_of(_URL)}): {', '.join(SCHEMES)}?")
        try:
            require("security", f"listener {listener}: OAUTHBEARER", SECURITY)
        except MissingExtraError as error:
            raise ConfigError(str(error)) from None
        self._now = now
        self.rules = TokenRules(
            frozenset(settings.names("sasl.oauthbearer.expected.audience")),
            settings.text("sasl.oauthbearer.expected.issuer"),
            settings.int("sasl.oauthbearer.clock.skew.seconds"),
            settings.text("sasl.oauthbearer.scope.claim.name"),
            settings.text("sasl.oauthbearer.sub.claim.name"),
        )
        source = JwksSource(
            url,
            _trusting({} if module is None else module.options, listener),
            settings.int("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000,
            settings.int("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") / 1000,
            settings.int("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms") / 1000,
        )
        self.jwks = Jwks(source, listener)

    def exchange(self) -> OAuthBearerExchange:
        """An exchange with a client."""
        return OAuthBearerExchange(self.validate)

    def validate(self, token: str) -> ValidToken:
        """Says what a token is worth, now.

        Raises:
            InvalidTokenError: it isn't taken. With an unknown key, the keys are asked for again.
        """
        try:
            return check_token(token, self.jwks.keys, self.rules, self._now())
        except UnknownKeyError:
            self.jwks.expedite()
            raise


def _trusting(options: dict[str, str], listener: str) -> ssl.SSLContext | None:
    """Whose certificates are trusted at an https URL, by the options of the login module; None for the system's."""
    location = options.get(f"{_TRUSTSTORE}.location")
    if not location:
        return None
    try:
        store = opened_store(Path(location), options.get(f"{_TRUSTSTORE}.password", ""), _TRUSTSTORE)
        text = Path(location).read_text() if store is None else store.certificates
        return ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        raise ConfigError(f"listener {listener}: {_TRUSTSTORE}.location={location} of OAUTHBEARER: {error}") from None
