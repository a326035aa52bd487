"""The addresses of `listeners` and `advertised.listeners`."""

from __future__ import annotations

import socket
from typing import NamedTuple

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})


class Endpoint(NamedTuple):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listening_endpoint(settings: Settings) -> Endpoint:
    """Returns the listener's address; an empty host is every address.

    Raises:
        ConfigError: there isn't exactly one listener, or it isn't PLAINTEXT.
    """
    return _only(settings, "listeners")


def advertised_endpoint(settings: Settings, listening: Endpoint) -> Endpoint:
    """Returns the address that clients connect to.

    Args:
        listening: the listener's address, with its actual port.

    Raises:
        ConfigError: as `listening_endpoint`.
    """
    if settings.names("advertised.listeners"):
        advertised = _only(settings, "advertised.listeners")
        if advertised.host in _WILDCARDS:
            raise ConfigError(
                f"advertised.listeners ({settings.source_of('advertised.listeners')}): {advertised} is no host"
            )
        return advertised if advertised.port else advertised._replace(port=listening.port)
    return listening._replace(host=socket.getfqdn()) if listening.host in _WILDCARDS else listening


def split_endpoint(text: str) -> Endpoint:
    """Parses "HOST:PORT", "[IPV6]:PORT" or ":PORT", with or without "PLAINTEXT://".

    Raises:
        ValueError: the text is none of these, or the port isn't between 0 and 65535.
    """
    host, colon, port = text.removeprefix("PLAINTEXT://").rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65_535:
        raise ValueError(f"{text!r} isn't HOST:PORT, with a port between 0 and 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address goes in brackets, as in [::1]:9092")
    return Endpoint(host, int(port))


def check_protocols(settings: Settings) -> None:
    """Raises ConfigError for a listener with a protocol that isn't served."""
    _endpoints(settings, "listeners")


def _only(settings: Settings, key: str) -> Endpoint:
    endpoints = _endpoints(settings, key)
    if len(endpoints) != 1:
        where = f"{key} ({settings.source_of(key)})"
        raise ConfigError(f"{where}: one listener is needed, not {len(endpoints)}")
    return endpoints[0]


def _endpoints(settings: Settings, key: str) -> list[Endpoint]:
    """The addresses of a key's listeners, without the controller's."""
    where = f"{key} ({settings.source_of(key)})"
    controllers = {name.upper() for name in settings.names("controller.listener.names")}
    protocols = dict(
        pair.strip().upper().split(":", 1)
        for pair in settings.text("listener.security.protocol.map").split(",")
        if ":" in pair
    )
    endpoints = []
    for listener in settings.names(key):
        name, _, address = listener.partition("://")
        if name.upper() in controllers:
            continue
        protocol = protocols.get(name.upper())
        if protocol is None:
            raise ConfigError(f"{where}: listener.security.protocol.map has no {name}")
        if protocol != "PLAINTEXT":
            raise ConfigError(f"{where}: {name} would be {protocol}, but only PLAINTEXT is served")
        endpoints.append(split_endpoint(address))
    return endpoints
