"""The listeners of `listeners`: their names, protocols and addresses, and those of `advertised.listeners`."""

from __future__ import annotations

import enum
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.security_keys import listener_key
from kohort.broker.config.settings import Settings

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})


class Endpoint(NamedTuple):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def everywhere(self) -> bool:
        """Whether it stands for every address of this machine."""
        return self.host in _WILDCARDS


class SecurityProtocol(enum.Enum):
    """What a listener speaks: TLS or plain text, with or without SASL."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """A listener.

    Attributes:
        name: in upper case, as Kafka compares it.
        endpoint: where it listens.
        advertised_as: where clients are told to connect to; None if that is where it listens.
    """

    name: str
    protocol: SecurityProtocol
    endpoint: Endpoint
    advertised_as: Endpoint | None = None

    def advertised(self, port: int) -> Endpoint:
        """The host and port that clients are told.

        Args:
            port: where it actually listens.
        """
        if self.advertised_as is not None:
            return self.advertised_as if self.advertised_as.port else self.advertised_as._replace(port=port)
        return Endpoint(socket.getfqdn() if self.endpoint.everywhere else self.endpoint.host, port)


def configured_listeners(settings: Settings) -> list[ListenerConfig]:
    """Returns the listeners, without the controller's; the first one is the first in `listeners`.

    Raises:
        ConfigError: there is none, or something about one can't be, or is set for one that there isn't.
    """
    where = f"listeners ({settings.source_of('listeners')})"
    protocols = _protocols(settings)
    endpoints = list(_endpoints(settings, "listeners"))
    if not endpoints:
        raise ConfigError(f"{where}: at least one listener is needed")
    names = [name for name, _ in endpoints]
    for what, counted in (("name", Counter(names)), ("address", Counter(at for _, at in endpoints if at.port))):
        value, count = counted.most_common(1)[0] if counted else ("", 0)
        if count > 1:
            raise ConfigError(f"{where}: {count} listeners have the {what} {value}")
    advertised = _advertised(settings, names)
    _check_prefixes(settings, names)
    listeners = []
    for name, endpoint in endpoints:
        if name not in protocols:
            raise ConfigError(f"{where}: listener.security.protocol.map has no {name}")
        listeners.append(ListenerConfig(name, protocols[name], endpoint, advertised.get(name)))
    return listeners


def unused_security(settings: Settings, listeners: Iterable[ListenerConfig]) -> list[str]:
    """The keys of TLS and SASL that are set, if no listener uses either."""
    if any(listener.protocol is not SecurityProtocol.PLAINTEXT for listener in listeners):
        return []
    return sorted(name for name in settings.static if name.startswith(("ssl.", "sasl.")) or listener_key(name))


def split_endpoint(text: str) -> Endpoint:
    """Parses "HOST:PORT", "[IPV6]:PORT" or ":PORT".

    Raises:
        ValueError: the text is none of these, or the port isn't between 0 and 65535.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65_535:
        raise ValueError(f"{text!r} isn't HOST:PORT, with a port between 0 and 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address goes in brackets, as in [::1]:9092")
    return Endpoint(host, int(port))


def _protocols(settings: Settings) -> dict[str, SecurityProtocol]:
    """The protocols by the names of listeners."""
    where = f"listener.security.protocol.map ({settings.source_of('listener.security.protocol.map')})"
    protocols = {}
    for pair in filter(None, map(str.strip, settings.text("listener.security.protocol.map").split(","))):
        name, _, protocol = pair.upper().partition(":")
        try:
            protocols[name.strip()] = SecurityProtocol(protocol.strip())
        except ValueError:
            known = ", ".join(protocol.value for protocol in SecurityProtocol)
            raise ConfigError(f"{where}: {pair!r} isn't NAME:PROTOCOL, with one of {known}") from None
    return protocols


def _endpoints(settings: Settings, key: str) -> Iterator[tuple[str, Endpoint]]:
    """The names and addresses of a key's listeners, without the controller's."""
    controllers = _controllers(settings)
    for listener in settings.names(key):
        name, _, address = listener.partition("://")
        if name.upper() not in controllers:
            yield name.upper(), split_endpoint(address)


def _controllers(settings: Settings) -> set[str]:
    return {name.upper() for name in settings.names("controller.listener.names")}


def _advertised(settings: Settings, names: list[str]) -> dict[str, Endpoint]:
    where = f"advertised.listeners ({settings.source_of('advertised.listeners')})"
    advertised: dict[str, Endpoint] = {}
    for name, endpoint in _endpoints(settings, "advertised.listeners"):
        if endpoint.everywhere:
            raise ConfigError(f"{where}: {endpoint} is no host")
        if name not in names:
            raise ConfigError(f"{where}: listeners has no {name}")
        if name in advertised:
            raise ConfigError(f"{where}: {name} is there twice")
        advertised[name] = endpoint
    return advertised


def _check_prefixes(settings: Settings, names: list[str]) -> None:
    """Refuses what is set for a listener that there isn't: a slip of the pen could leave another one open."""
    known = {name.lower() for name in (*names, *_controllers(settings))}
    for name, configured in settings.static.items():
        own = listener_key(name)
        if own is not None and own.listener and own.listener not in known:
            raise ConfigError(f"{name} ({configured.where}): listeners has no {own.listener.upper()}")
