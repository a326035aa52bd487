"""ListPartitionReassignments: on one node there never is one."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: ListPartitionReassignmentsRequest, context: Context) -> ListPartitionReassignmentsResponse:
    """Returns an empty list: topics without a reassignment are left out, and unknown topics as well."""
    if not context.cluster_allowed(Operation.DESCRIBE):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    return ListPartitionReassignmentsResponse(error_message=None)
