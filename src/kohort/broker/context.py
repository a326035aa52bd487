"""A request's context: the broker's components, the API version, the client and its connection."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kohort.broker.components import BrokerComponents
from kohort.broker.session import Session
from kohort.coordinator.step import Client

OPERATIONS_NOT_REQUESTED: Final = -(2**31)
"""The authorized operations in a response if the request didn't ask for them, or the client may not describe the
resource."""


class Context:
    """The context of a request.

    Attributes:
        broker: the broker's components.
        now: when the request arrived, in ms since 1970.
        client_id: from the request's header.
    """

    __slots__ = ("broker", "client_id", "now", "session", "version")

    def __init__(self, broker: BrokerComponents, version: int, now: int, client_id: str, session: Session) -> None:
        self.broker = broker
        self.version = version
        self.now = now
        self.client_id = client_id
        self.session = session

    @property
    def client(self) -> Client:
        """The client as coordinators see it; its address starts with a slash, as Java prints it."""
        return Client(self.client_id, f"/{self.session.host}", self.version, self.session.principal)

    def allowed(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        return authorizer.allowed(self.session.principal, self.session.host, operation, kind, name)

    def cluster_allowed(self, operation: Operation) -> bool:
        return self.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_create_topic(self, name: str) -> bool:
        return self.cluster_allowed(Operation.CREATE) or self.allowed(Operation.CREATE, ResourceType.TOPIC, name)

    def cluster_operations(self) -> int:
        """The operations that the client is allowed on the cluster, a bit each; 0 if it may not describe it."""
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME) if self.cluster_allowed(Operation.DESCRIBE) else 0

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the client is allowed on the resource, a bit each (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.allowed(operation, kind, name))
