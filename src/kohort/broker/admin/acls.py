"""What the handlers of access rules share: rules and filters of requests."""

from __future__ import annotations

from typing import Final

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_acls import CreateAclsRequest
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from kohort.protocol.messages.describe_acls import DescribeAclsRequest
from kohort.security.acls import Acl, AclFilter

NO_AUTHORIZER: Final = KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def requested_rule(creation: CreateAclsRequest.Creation) -> Acl:
    """A rule that is to be added.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    try:
        acl = Acl(
            ResourceType(creation.resource_type),
            creation.resource_name,
            PatternType(creation.resource_pattern_type),
            creation.principal,
            creation.host,
            Operation(creation.operation),
            Permission(creation.permission_type),
        )
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The rule isn't understood: {error}.") from None
    problem = acl.problem()
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    return acl


def requested_filter(wanted: DescribeAclsRequest | DeleteAclsRequest.Filter) -> AclFilter:
    """A filter for rules.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    try:
        return AclFilter(
            ResourceType(wanted.resource_type_filter),
            wanted.resource_name_filter,
            PatternType(wanted.pattern_type_filter),
            wanted.principal_filter,
            wanted.host_filter,
            Operation(wanted.operation),
            Permission(wanted.permission_type),
        )
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The filter isn't understood: {error}.") from None
