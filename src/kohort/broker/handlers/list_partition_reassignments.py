"""ListPartitionReassignments: none is ever under way on one node."""

from __future__ import annotations

from kohort.broker.admin.authorization import cluster_allowed
from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: ListPartitionReassignmentsRequest, context: Context) -> ListPartitionReassignmentsResponse:
    """An empty list: topics without a move are left out, and so are those that don't exist."""
    if not cluster_allowed(context, Operation.DESCRIBE):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    return ListPartitionReassignmentsResponse(error_message=None)
