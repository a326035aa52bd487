"""DescribeAcls: the access rules that match a filter."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

SERVED: Final = Served(DescribeAclsRequest, versions=(1, 3))


def handle(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    if not context.cluster_allowed(Operation.DESCRIBE):
        return DescribeAclsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
