"""Authorization of operations on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.broker.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kohort.broker.context import Context

__all__ = ["OPERATIONS_NOT_REQUESTED", "cluster_allowed"]

OPERATIONS_NOT_REQUESTED: Final = -(2**31)
"""The authorized operations in a response if the request didn't ask for them, or the client may not describe the
resource."""


def cluster_allowed(context: Context, operation: Operation) -> bool:
    """Whether the client is allowed `operation` on the cluster."""
    return context.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME)
