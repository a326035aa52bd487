"""What a handler knows of a request besides its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.broker.security import OPERATIONS, Operation, ResourceType
from kohort.coordinator.step import Client

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

__all__ = ["Context"]


class Context:
    """Where a request came from, and the broker it came to.

    Attributes:
        broker: the broker.
        version: version of the API that the request was sent in.
        client_id, client_host: the client's name for itself, and its address.
        principal: who it is, as "User:ANONYMOUS".
        now: when the request came, in ms since 1970.
        request_bytes: size of the request with its header.
    """

    __slots__ = ("broker", "client_host", "client_id", "now", "principal", "request_bytes", "version")

    def __init__(
        self,
        broker: Broker,
        version: int,
        now: int,
        client_id: str = "",
        client_host: str = "127.0.0.1",
        principal: str = "User:ANONYMOUS",
        request_bytes: int = 0,
    ) -> None:
        self.broker = broker
        self.version = version
        self.now = now
        self.client_id = client_id
        self.client_host = client_host
        self.principal = principal
        self.request_bytes = request_bytes

    @property
    def client(self) -> Client:
        """The client, as coordinators know it."""
        return Client(self.client_id, self.client_host, self.version)

    def allowed(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do `operation` to the resource."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allowed(self.principal, self.client_host, operation, kind, name)

    def operations(self, kind: ResourceType, name: str) -> int:
        """What the client may do to the resource, a bit for each operation (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.allowed(operation, kind, name))
