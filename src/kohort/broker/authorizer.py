"""Who may do what: the hook that is asked wherever Kafka asks its authorizer.

Operations and resource types have Kafka's numbers.
"""

from __future__ import annotations

import enum
from typing import Final, Protocol

__all__ = ["CLUSTER_NAME", "OPERATIONS", "Authorizer", "Operation", "ResourceType"]


class Operation(enum.IntEnum):
    """What one may be allowed to do."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


class ResourceType(enum.IntEnum):
    """What it may be done to."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the one resource of type CLUSTER."""

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
"""The operations that make sense on a type of resource, where clients may ask which of them they are allowed."""


class Authorizer(Protocol):
    """Decides on requests; a broker without one allows everything, as Kafka does.

    It is called for every resource of every request, so it must be quick.
    """

    def allowed(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether `principal` ("User:alice"), coming from `host`, may do it."""
        ...
