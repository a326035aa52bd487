"""What a handler knows of a request besides its message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.broker.authorizer import OPERATIONS, Operation, ResourceType
from kohort.coordinator.step import Client

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

__all__ = ["Context", "Session"]


@dataclass(slots=True)
class Session:
    """A connection, as requests that come by it see it.

    Attributes:
        host, port: the client's address.
        principal: who it is.
        software_name, software_version: what it said of itself in ApiVersions (KIP-511).
        on_close: called when it is closed; ends what waits for it alone.
    """

    host: str = ""
    port: int = 0
    principal: str = "User:ANONYMOUS"
    software_name: str = ""
    software_version: str = ""
    on_close: Callable[[], object] | None = None


class Context:
    """Where a request came from, and the broker it came to.

    Attributes:
        broker: the broker.
        version: version of the API that the request was sent in.
        now: when the request came, in ms since 1970.
        client_id: the client's name for itself.
        session: the connection that the request came by.
    """

    __slots__ = ("broker", "client_id", "now", "session", "version")

    def __init__(self, broker: Broker, version: int, now: int, client_id: str, session: Session) -> None:
        self.broker = broker
        self.version = version
        self.now = now
        self.client_id = client_id
        self.session = session

    @property
    def client(self) -> Client:
        """The client, as coordinators know it; its address begins with a slash, as Java writes addresses."""
        return Client(self.client_id, f"/{self.session.host}", self.version)

    def allowed(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do `operation` to the resource."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        return authorizer.allowed(self.session.principal, self.session.host, operation, kind, name)

    def operations(self, kind: ResourceType, name: str) -> int:
        """What the client may do to the resource, a bit for each operation (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.allowed(operation, kind, name))
