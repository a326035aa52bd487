"""A broker with Kafka's StandardAuthorizer, rules for it, and who asks."""

from __future__ import annotations

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.protocol.messages.create_acls import CreateAclsRequest
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from kohort.protocol.messages.describe_acls import DescribeAclsRequest
from kohort.security.acls import Acl, AclFilter

AUTHORIZED: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
ADMIN = "User:admin"
READS = Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
WRITES = READS._replace(name="ord", pattern=PatternType.PREFIXED, operation=Operation.WRITE)
GROUPS = READS._replace(kind=ResourceType.GROUP, name="*", permission=Permission.DENY)


def creation(acl: Acl) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=acl.kind,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def describe(wanted: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=wanted.kind,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def deletion(wanted: AclFilter) -> DeleteAclsRequest.Filter:
    return DeleteAclsRequest.Filter(
        resource_type_filter=wanted.kind,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
