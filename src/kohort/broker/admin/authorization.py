"""A question to the authorizer that several handlers ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.broker.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kohort.broker.context import Context

__all__ = ["OPERATIONS_NOT_REQUESTED", "cluster_allowed"]

OPERATIONS_NOT_REQUESTED: Final = -(2**31)
"""What a response carries as authorized operations where they weren't asked for, or must not be told."""


def cluster_allowed(context: Context, operation: Operation) -> bool:
    """Whether the client may do `operation` to the cluster."""
    return context.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME)
