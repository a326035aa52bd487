"""A connection as handlers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kohort.broker.config.listeners import Endpoint

_NOWHERE: Final = Endpoint("", 0)


@dataclass(slots=True, eq=False)
class Session:
    """A connection as handlers see it.

    Attributes:
        host, port: the client's.
        advertised: host and port that clients connect to, of the listener they came by.
        software_name, software_version: from the client's ApiVersions request (KIP-511).
        on_close: called when the connection closes; ends the delayed operation of its request.
    """

    host: str = ""
    port: int = 0
    advertised: Endpoint = _NOWHERE
    principal: str = "User:ANONYMOUS"
    software_name: str = ""
    software_version: str = ""
    on_close: Callable[[], object] | None = None
