"""The settings that all clients share: addresses, security, timeouts."""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kohort.client.addresses import Address, parse_addresses
from kohort.client.errors import ConfigError

__all__ = ["ClientConfig", "Servers", "client_config"]

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_EXTENSION: Final = re.compile(r"[A-Za-z]+=[\x21-\x7E \t\r\n]+")

_MAX_FRAME: Final = 2**31 - 1
_MAX_STRING: Final = 2**15 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The settings that all clients share, named as Kafka's, with underscores. Times are in ms.

    Attributes:
        bootstrap_servers: "HOST:PORT,…" or a sequence of such; kept as (host, port) pairs.
        client_id: the client's name in the broker's logs, metrics and quotas.
        client_rack: the client's rack, so that consumers read from replicas nearby and assignors know; "" for none.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        ssl_cafile: PEM file of the certificates to trust; None for the system's.
        ssl_certfile, ssl_keyfile, ssl_password: PEM files of the client's own certificate and key (the key may be in
            the former), and the key's password, for brokers that ask for it.
        ssl_check_hostname: whether the broker's certificate must be for the host connected to.
        ssl_context: a context to use instead of all these.
        sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
        sasl_username, sasl_password: credentials; with OAUTHBEARER those of `sasl_token_url`, if it is an https URL.
        sasl_token: returns a token for OAUTHBEARER (a JWT, mostly), or a coroutine of one. It is called for each
            connection, and before a session ends; if it isn't a coroutine function, in a thread.
        sasl_token_url: instead of that: a file: URL, which has a token and is read each time; or an https: URL,
            where one is asked for with `sasl_username` and `sasl_password` (the grant "client credentials").
        sasl_token_cafile: PEM file of the certificates to trust there; None for the system's.
        sasl_scope: what is asked for there; None for what the issuer gives.
        sasl_extensions: more that OAUTHBEARER tells the broker, as name-value pairs.
        request_timeout_ms: how long a response may take.
        socket_connection_setup_timeout_ms: how long a connection may take, with TLS and authentication.
        reconnect_backoff_ms, reconnect_backoff_max_ms: first and longest pause before a broker is tried again.
        retry_backoff_ms, retry_backoff_max_ms: the same before a request is sent again.
        metadata_max_age_ms: when metadata is refreshed, if nothing requested it earlier.
        connections_max_idle_ms: when an idle connection is closed.
        bootstrap_timeout_ms: how long to look for a first broker; None for ever.
        receive_message_max_bytes: size limit of a response.
        on_no_broker: called in the event loop with the reason when the first broker isn't found at once, and again with
            each round in which none answered: so that a program can say what it waits for.

    Raises:
        ConfigError: invalid settings.
    """

    bootstrap_servers: str | Sequence[str | Address]
    client_id: str = "kohort"
    client_rack: str = ""
    security_protocol: str = "PLAINTEXT"
    ssl_cafile: str | Path | None = None
    ssl_certfile: str | Path | None = None
    ssl_keyfile: str | Path | None = None
    ssl_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: str = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_token: Callable[[], str | Awaitable[str]] | None = field(default=None, repr=False)
    sasl_token_url: str | None = None
    sasl_token_cafile: str | Path | None = None
    sasl_scope: str | None = None
    sasl_extensions: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    request_timeout_ms: int = 30_000
    socket_connection_setup_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    bootstrap_timeout_ms: int | None = None
    receive_message_max_bytes: int = 256 * 1024 * 1024
    on_no_broker: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check and normalise."""
        object.__setattr__(self, "bootstrap_servers", parse_addresses(self.bootstrap_servers))
        object.__setattr__(self, "security_protocol", self.security_protocol.upper())
        object.__setattr__(self, "sasl_mechanism", self.sasl_mechanism.upper())
        _one_of("security_protocol", self.security_protocol, SECURITY_PROTOCOLS)
        _one_of("sasl_mechanism", self.sasl_mechanism, SASL_MECHANISMS)
        for each in fields(self):
            if each.name.endswith("_ms"):
                _check_int(each.name, getattr(self, each.name), 0, optional=each.name == "bootstrap_timeout_ms")
        for name in ("request_timeout_ms", "socket_connection_setup_timeout_ms", "metadata_max_age_ms"):
            _check_int(name, getattr(self, name), 1)
        _check_int("receive_message_max_bytes", self.receive_message_max_bytes, 1024, _MAX_FRAME)
        if len(self.client_id.encode()) > _MAX_STRING:
            raise ConfigError(f"client_id is longer than {_MAX_STRING} bytes")
        extensions = self.sasl_extensions.items() if isinstance(self.sasl_extensions, Mapping) else self.sasl_extensions
        object.__setattr__(self, "sasl_extensions", tuple((name, value) for name, value in extensions))
        if self.uses_sasl and self.sasl_mechanism == "OAUTHBEARER":
            self._check_tokens()
        elif self.sasl_token is not None or self.sasl_token_url is not None:
            raise ConfigError("a token needs sasl_mechanism=OAUTHBEARER, and security_protocol=SASL_SSL")
        elif self.uses_sasl and (self.sasl_username is None or self.sasl_password is None):
            raise ConfigError(f"{self.security_protocol} needs sasl_username and sasl_password")
        if not self.uses_sasl and self.sasl_username is not None:
            raise ConfigError(
                f"sasl_username is given, but security_protocol={self.security_protocol} doesn't authenticate: "
                "it should be SASL_SSL or SASL_PLAINTEXT"
            )
        if not self.uses_tls and (self.ssl_context or self.ssl_cafile or self.ssl_certfile):
            raise ConfigError(
                f"ssl settings are given, but security_protocol={self.security_protocol} doesn't encrypt: "
                "it should be SSL or SASL_SSL"
            )
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ConfigError("ssl_keyfile needs ssl_certfile, the certificate that the key belongs to")

    def _check_tokens(self) -> None:
        if (self.sasl_token is None) == (self.sasl_token_url is None):
            raise ConfigError("OAUTHBEARER needs sasl_token or sasl_token_url, one of them")
        scheme = urlsplit(self.sasl_token_url or "file:").scheme
        if scheme not in ("file", "https"):
            raise ConfigError(f"sasl_token_url={self.sasl_token_url}: a file: or https: URL is wanted")
        if (scheme == "https") == (self.sasl_username is None or self.sasl_password is None):
            raise ConfigError(
                "OAUTHBEARER needs sasl_username and sasl_password with an https sasl_token_url, only then"
            )
        for name, value in self.sasl_extension_pairs:
            if name == "auth" or not _EXTENSION.fullmatch(f"{name}={value}"):
                raise ConfigError(
                    f"sasl_extensions: {name!r}: a name of letters but auth, and a value of ASCII are wanted"
                )

    @property
    def sasl_extension_pairs(self) -> tuple[tuple[str, str], ...]:
        """The extensions of OAUTHBEARER as (name, value)."""
        return self.sasl_extensions  # type: ignore[return-value]  # normalised when it was made

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The bootstrap servers as (host, port)."""
        return self.bootstrap_servers  # type: ignore[return-value]  # normalised when it was made

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections are authenticated by name and password, or by a token."""
        return self.security_protocol.startswith("SASL")

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], source: str = "the configuration", **settings: Any
    ) -> tuple[ClientConfig, dict[str, str]]:
        """Reads Kafka's dotted keys, in Java's or librdkafka's spelling.

        Args:
            properties: values by key.
            source: names their origin, for errors.
            settings: attributes that override them; None counts as not given.

        Returns:
            the configuration, and the properties for consumers or producers alone.

        Raises:
            ConfigError: an unknown key (names the nearest one), or an invalid value.
        """
        from kohort.client.properties import read_settings

        found, others = read_settings(properties, source)
        given = {name: value for name, value in settings.items() if value is not None}
        try:
            return cls(**{**found, **given}), others
        except TypeError:
            if "bootstrap_servers" in found or "bootstrap_servers" in given:
                raise
            raise ConfigError(f"{source}: bootstrap.servers is missing") from None
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None

    @classmethod
    def from_file(cls, path: str | Path, **settings: Any) -> tuple[ClientConfig, dict[str, str]]:
        """Reads a .properties file, as for --command-config of Kafka's tools; see `from_properties`.

        Raises:
            ConfigError: as there, or the file can't be read.
        """
        from kohort.client.properties import read_file

        return cls.from_properties(read_file(Path(path)), str(path), **settings)


Servers = str | Sequence[str] | ClientConfig
"""A client's first argument: addresses, or a configuration."""


def client_config(servers: Servers) -> ClientConfig:
    """Returns the configuration for `servers`.

    Raises:
        ConfigError: invalid addresses.
    """
    return servers if isinstance(servers, ClientConfig) else ClientConfig(bootstrap_servers=servers)


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name}={value!r}: Kohort knows {', '.join(known)}")


def _check_int(name: str, value: object, least: int, most: int = 2**53, *, optional: bool = False) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name}={value!r}: a whole number is wanted")
    if not least <= value <= most:
        raise ConfigError(f"{name}={value}: must be " + (f"from {least} to {most}" if value > most else f">= {least}"))
