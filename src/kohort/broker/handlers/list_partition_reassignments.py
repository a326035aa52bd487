"""ListPartitionReassignments: on one node there never is one."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

SERVED: Final = Served(ListPartitionReassignmentsRequest, versions=(0, 0))


def handle(request: ListPartitionReassignmentsRequest, context: Context) -> ListPartitionReassignmentsResponse:
    """Returns an empty list: topics without a reassignment are left out, and unknown topics as well."""
    if not context.cluster_allowed(Operation.DESCRIBE):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    return ListPartitionReassignmentsResponse(error_message=None)
