"""Parses addresses of brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.client.errors import ConfigError

__all__ = ["DEFAULT_PORT", "Address", "address_text", "parse_addresses"]

Address = tuple[str, int]
"""A host's name or IP address, and a TCP port."""

DEFAULT_PORT: Final = 9092


def parse_addresses(servers: str | Iterable[str | Address], *, least_port: int = 1) -> tuple[Address, ...]:
    """Parses a list such as "kafka-1:9092, [::1]:9093" (or a sequence of such); returns each address once, in order.

    The default port is 9092. A scheme before a host, as in a listener ("SASL_SSL://kafka:9093"), is ignored.

    Args:
        servers: the addresses.
        least_port: 0 to allow that, for a free port.

    Raises:
        ConfigError: no address, or an invalid one.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    found: dict[Address, None] = {}
    for text in texts:
        if not isinstance(text, str):
            found[text] = None
            continue
        for one in text.split(","):
            if one.strip():
                found[_address(one.strip(), least_port)] = None
    if not found:
        raise ConfigError('bootstrap_servers names no broker: give "HOST:PORT", several with commas between')
    return tuple(found)


def address_text(address: Address) -> str:
    """An address as `parse_addresses` takes it: "kafka-1:9092", "[::1]:9093"."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(text: str, least_port: int) -> Address:
    plain = text.rpartition("://")[2]
    if plain.startswith("["):
        host, closed, rest = plain[1:].partition("]")
        separator, port = rest[:1], rest[1:]
        good = bool(closed) and separator in ("", ":")
    elif plain.count(":") > 1:
        raise ConfigError(f"bootstrap_servers: {text!r}: write an IPv6 address in brackets, as in [::1]:9092")
    else:
        host, separator, port = plain.partition(":")
        good = True
    if not separator:
        port = str(DEFAULT_PORT)
    if not good or not host or any(c.isspace() for c in host) or not (port.isascii() and port.isdigit()):
        raise ConfigError(f"bootstrap_servers: {text!r} is not HOST:PORT")
    if not least_port <= int(port) < 65536:
        raise ConfigError(f"bootstrap_servers: {text!r}: ports go from {least_port} to 65535")
    return host, int(port)
