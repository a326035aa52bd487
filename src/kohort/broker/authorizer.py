"""The authorizer hook: called wherever Kafka calls its authorizer.

Operations and resource types have Kafka's numbers.
"""

from __future__ import annotations

from typing import Final, Protocol

from kohort.protocol.access_types import CLUSTER_NAME, Operation, ResourceType

__all__ = ["CLUSTER_NAME", "OPERATIONS", "Authorizer", "Operation", "ResourceType"]

_TOPIC: Final = (
    Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
)  # fmt: skip
_CLUSTER: Final = (
    Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
)  # fmt: skip
_GROUP: Final = (
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
)  # fmt: skip

OPERATIONS: Final = {ResourceType.TOPIC: _TOPIC, ResourceType.CLUSTER: _CLUSTER, ResourceType.GROUP: _GROUP}
"""The operations on each type of resource, for clients that ask which of them they are allowed (KIP-430)."""


class Authorizer(Protocol):
    """Decides which operations are allowed; a broker without an authorizer allows all, as in Kafka.

    It is called for every resource of every request, so it must be quick.
    """

    def allowed(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether `principal` ("User:alice") from `host` is allowed `operation` on the resource."""
        ...
