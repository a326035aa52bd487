"""DescribeAcls: the access rules that match a filter."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from kohort.broker.admin.acls import NO_AUTHORIZER, requested_filter
from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kohort.security.acls import Acl

SERVED: Final = Served(DescribeAclsRequest, versions=(1, 3))

Resource = DescribeAclsResponse.Resource


def handle(request: DescribeAclsRequest, context: Context) -> Slices[DescribeAclsResponse]:
    """Lists the rules by what they are about."""
    try:
        if not context.cluster_allowed(Operation.DESCRIBE):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if context.broker.access_rules is None:
            raise NO_AUTHORIZER
        acls = yield from context.broker.access_rules.matching(requested_filter(request))
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.detail)
    resources = []
    for (kind, name, pattern), same in groupby(acls, key=_resource):
        entries = [
            Resource.Acl(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
            for acl in same
        ]
        resources.append(Resource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=entries))
        yield
    return DescribeAclsResponse(error_message=None, resources=resources)


def _resource(acl: Acl) -> tuple[int, str, int]:
    return acl.kind, acl.name, acl.pattern
