"""DeleteAcls: removes the access rules that match any of some filters."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

SERVED: Final = Served(DeleteAclsRequest, versions=(1, 3))

Result = DeleteAclsResponse.FilterResult


def handle(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    if not context.cluster_allowed(Operation.ALTER):
        result = Result(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    else:
        result = Result(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
