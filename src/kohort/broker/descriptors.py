"""Who is refused first where file descriptors are short: new connections."""

from __future__ import annotations

import resource
from typing import Final

_SHARE: Final = 8
_LEAST: Final = 16
_NEWCOMERS: Final = 1000


def reserved(limit: int) -> int:
    """How many descriptors are left for the files of logs, and for what else the server opens."""
    return max(_LEAST, limit // _SHARE)


def most_connections(configured: int) -> int:
    """How many connections there may be: as many as are configured, unless descriptors are short before."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return configured if limit == resource.RLIM_INFINITY else min(configured, limit - reserved(limit))


def newcomers() -> int:
    """How many connections there may be that haven't said who they are: two descriptors each, in a handshake."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _NEWCOMERS if limit == resource.RLIM_INFINITY else max(_LEAST, min(_NEWCOMERS, limit // 4))


def refusal(descriptor: int) -> str | None:
    """The reason why a new connection with a descriptor is refused; None if it isn't.

    The kernel gives the lowest number that is free: a high one says that all below are in use.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and descriptor >= limit - reserved(limit):
        return f"file descriptors are short: the limit on open files (ulimit -n) is {limit}"
    return None
