"""Which names a browser may know the console by.

A page of somebody else's may have its own name lead here (DNS rebinding); the browser would then let it read what it
gets. It can't do that with an address, so these are let in, and of names those that were given.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

LOCALHOST = "localhost"


def is_allowed(host: str | None, names: Collection[str]) -> bool:
    """Whether a request with this header Host is answered.

    Args:
        host: with a port or without.
        names: of this console, in small letters, beside localhost.
    """
    name = name_of(host or "")
    if name is None:
        return False
    if name == LOCALHOST or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def name_of(host: str) -> str | None:
    """The name or address of a Host, in small letters; None if it isn't one."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        if not bracket or (port and not _is_port(port.removeprefix(":"))) or (port and not port.startswith(":")):
            return None
        return name.lower() if ":" in name else None
    name, colon, port = host.partition(":")
    if not name or (colon and not _is_port(port)):
        return None
    return name.lower().removesuffix(".")


def is_own(origin: str, host: str | None) -> bool:
    """Whether a header Origin is of a page that came from this Host; the scheme may be a proxy's."""
    place = origin.partition("://")[2].lower()
    return place != "" and place == (host or "").lower()


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5
