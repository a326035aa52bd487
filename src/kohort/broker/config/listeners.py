"""Where the broker listens, and the address that clients are told: `listeners` and `advertised.listeners`."""

from __future__ import annotations

import socket
from typing import NamedTuple

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings

__all__ = ["Endpoint", "advertised_endpoint", "listening_endpoint", "split_endpoint"]

_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})


class Endpoint(NamedTuple):
    """A host, and a port of it: 0 for one that is still to be chosen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listening_endpoint(settings: Settings) -> Endpoint:
    """Where connections are to be accepted; an empty host is every address.

    Raises:
        ConfigError: there is no listener or more than one, or one that would have to be secured.
    """
    return _only(settings, "listeners")


def advertised_endpoint(settings: Settings, listening: Endpoint) -> Endpoint:
    """The address that clients are told.

    Args:
        settings: the configuration.
        listening: where connections are accepted, with the port that was chosen.

    Raises:
        ConfigError: as `listening_endpoint`.
    """
    if settings.names("advertised.listeners"):
        told = _only(settings, "advertised.listeners")
        if told.host in _EVERYWHERE:
            raise ConfigError(
                f"advertised.listeners ({settings.provenance('advertised.listeners')}): {told} is no host"
            )
        return told if told.port else told._replace(port=listening.port)
    return listening._replace(host=socket.getfqdn()) if listening.host in _EVERYWHERE else listening


def split_endpoint(text: str) -> Endpoint:
    """The host and port in "HOST:PORT", "[IPV6]:PORT" or ":PORT"; "PLAINTEXT://" may stand before it.

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


def _only(settings: Settings, key: str) -> Endpoint:
    where = f"{key} ({settings.provenance(key)})"
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
    if len(endpoints) != 1:
        raise ConfigError(f"{where}: one listener is needed, not {len(endpoints)}")
    return endpoints[0]
