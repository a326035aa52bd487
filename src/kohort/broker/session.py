"""A connection as handlers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kohort.broker.config.listeners import Endpoint, SecurityProtocol
from kohort.security.sasl.authenticator import Authenticator

_NOWHERE: Final = Endpoint("", 0)


@dataclass(slots=True, eq=False)
class Session:
    """A connection as handlers see it.

    Attributes:
        host, port: the client's.
        advertised: host and port that clients connect to, of the listener they came by.
        protocol: of that listener.
        software_name, software_version: from the client's ApiVersions request (KIP-511).
        on_close: called when the connection closes; ends the delayed operation of its request.
        on_known: called when the client has said who it is, for the first time.
        authenticator: of a connection that has to say who it is; None of others.
        by_token: whether the client has authenticated by a delegation token.
        throttle_ms: how long the connection isn't read from after the next response, for a quota.
        ends: whether the connection is closed after the next response.
        gone: whether the connection is closed: nothing is to be waited for any more.
    """

    host: str = ""
    port: int = 0
    advertised: Endpoint = _NOWHERE
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    principal: str = "User:ANONYMOUS"
    software_name: str = ""
    software_version: str = ""
    on_close: Callable[[], object] | None = None
    on_known: Callable[[], object] | None = None
    authenticator: Authenticator | None = None
    by_token: bool = False
    throttle_ms: int = 0
    ends: bool = False
    gone: bool = False

    @property
    def known(self) -> bool:
        """Whether the client has said who it is, or needn't."""
        return self.authenticator is None or self.authenticator.name is not None

    def takes(self, size: int) -> bool:
        """Whether a request of some bytes isn't too large for the time being."""
        if self.authenticator is None or self.authenticator.name is not None:  # as `known`
            return True
        most = self.authenticator.settings.max_receive_bytes
        return most < 0 or size <= most  # below 0 there is no limit, as in Kafka
