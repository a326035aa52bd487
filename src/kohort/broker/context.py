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
        api: name of the request's API, for the log.
    """

    __slots__ = ("api", "broker", "client_id", "now", "session", "version")

    def __init__(
        self, broker: BrokerComponents, version: int, now: int, client_id: str, session: Session, api: str = ""
    ) -> None:
        self.api = api
        self.broker = broker
        self.version = version
        self.now = now
        self.client_id = client_id
        self.session = session

    @property
    def client(self) -> Client:
        """The client as coordinators see it; its address starts with a slash, as Java prints it."""
        return Client(self.client_id, f"/{self.session.host}", self.version, self.session.principal)

    def allowed(self, operation: Operation, kind: ResourceType, name: str, *, audited: bool = True) -> bool:
        """Whether the client is allowed an operation on a resource.

        Args:
            audited: whether the client asked for just this, so that a denial is worth a line in the log.
        """
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        session = self.session
        allowed = authorizer.allowed(session.principal, session.host, operation, kind, name)
        if audited:
            who = (session.principal, session.host)
            self.broker.audit.decided(who, operation, kind, name, self.api, allowed=allowed)
        return allowed

    def cluster_allowed(self, operation: Operation, *, audited: bool = True) -> bool:
        return self.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME, audited=audited)

    def mutate(self, partitions: int, *, strict_since: int) -> None:
        """Counts partitions that the client creates or deletes against its quota.

        Args:
            strict_since: the API's first version with the error.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED.
        """
        strict = self.version >= strict_since
        self.broker.throttling.mutate(self.session, self.client_id, partitions, strict=strict)

    def may_create_topic(self, name: str) -> bool:
        return self.cluster_allowed(Operation.CREATE, audited=False) or self.allowed(
            Operation.CREATE, ResourceType.TOPIC, name
        )

    def may_write_somewhere(self) -> bool:
        """Whether the client may write to any topic."""
        rules = self.broker.access_rules
        if rules is not None:
            session = self.session
            return rules.authorizer.allowed_on_any(session.principal, session.host, Operation.WRITE, ResourceType.TOPIC)
        return self.broker.authorizer is None or any(
            self.allowed(Operation.WRITE, ResourceType.TOPIC, topic.name, audited=False) for topic in self.broker.topics
        )

    def cluster_operations(self) -> int:
        """The operations that the client is allowed on the cluster, a bit each; 0 if it may not describe it."""
        if not self.cluster_allowed(Operation.DESCRIBE, audited=False):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the client is allowed on the resource, a bit each (KIP-430)."""
        return sum(1 << each for each in OPERATIONS[kind] if self.allowed(each, kind, name, audited=False))
