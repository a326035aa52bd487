"""What can be done to what: operations, types of resources, and how a rule names resources. Kafka's numbers."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["CLUSTER_NAME", "Operation", "PatternType", "Permission", "ResourceType"]


class Operation(enum.IntEnum):
    """Kafka's AclOperation. ANY is for filters alone; ALL is in rules, never asked for."""

    ANY = 1
    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(enum.IntEnum):
    """Kafka's ResourceType of ACLs. ANY is for filters alone."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How a name stands for resources. ANY and MATCH are for filters alone: MATCH finds what covers the name."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(enum.IntEnum):
    """What a rule does. ANY is for filters alone."""

    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the one resource of type CLUSTER."""
