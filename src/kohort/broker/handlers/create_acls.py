"""CreateAcls: adds access rules."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse

SERVED: Final = Served(CreateAclsRequest, versions=(1, 3))

Result = CreateAclsResponse.Result


def handle(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    if not context.cluster_allowed(Operation.ALTER):
        result = Result(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    else:
        result = Result(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
    return CreateAclsResponse(results=[result] * len(request.creations))
