"""IP addresses, of which IPv6 has many spellings."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

__all__ = ["one_spelling", "spellings"]


@lru_cache(maxsize=1024)
def one_spelling(host: str) -> str:
    """An address as the system writes it, one of IPv4 also where it comes as IPv6; other texts stay as they are."""
    address = _address(host)
    if address is None:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=1024)
def spellings(host: str) -> tuple[str, ...]:
    """An address as the system writes it, and as Java does: rules that were made for Kafka have it so."""
    address = _address(host)
    if not isinstance(address, ipaddress.IPv6Address):
        return (host,)
    groups = address.exploded.partition("%")[0].split(":")
    java = ":".join(group.lstrip("0") or "0" for group in groups)
    return tuple(dict.fromkeys((host, one_spelling(host), java)))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
