"""Checks of replication factors and manual replica assignments: there is one node."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.protocol.errors import ErrorCode, KafkaError


def check_replicas(replicas: Sequence[int], node_id: int) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless `replicas` is this node, once."""
    if not replicas:
        raise _invalid("has no replicas")
    for replica in sorted(replicas):
        if replica != node_id:
            raise _invalid(f"includes broker {replica}, but no such broker is registered")
    if len(replicas) > 1:
        raise _invalid(f"includes broker {node_id} more than once")


def check_replication(factor: int) -> None:
    """Raises INVALID_REPLICATION_FACTOR for more than one replica."""
    if factor > 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {factor} can't be reached, since there is only 1 broker.",
        )


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {what}.")
