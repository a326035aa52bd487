"""A request's context: the broker, the API version, the client and its connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.broker.authorizer import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kohort.coordinator.step import Client

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

OPERATIONS_NOT_REQUESTED: Final = -(2**31)
"""The authorized operations in a response if the request didn't ask for them, or the client may not describe the
resource."""


@dataclass(slots=True)
class Session:
    """A connection as handlers see it.

    Attributes:
        software_name, software_version: from the client's ApiVersions request (KIP-511).
        on_close: called when the connection closes; ends the delayed operation of its request.
    """

    host: str = ""
    port: int = 0
    principal: str = "User:ANONYMOUS"
    software_name: str = ""
    software_version: str = ""
    on_close: Callable[[], object] | None = None


class Context:
    """The context of a request.

    Attributes:
        now: when the request arrived, in ms since 1970.
        client_id: from the request's header.
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
        """The client as coordinators see it; its address starts with a slash, as Java prints it."""
        return Client(self.client_id, f"/{self.session.host}", self.version)

    def allowed(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        return authorizer.allowed(self.session.principal, self.session.host, operation, kind, name)

    def cluster_allowed(self, operation: Operation) -> bool:
        return self.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def cluster_operations(self) -> int:
        """The operations that the client is allowed on the cluster, a bit each; 0 if it may not describe it."""
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME) if self.cluster_allowed(Operation.DESCRIBE) else 0

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the client is allowed on the resource, a bit each (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.allowed(operation, kind, name))
