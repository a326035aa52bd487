"""Access rules (ACLs): who may or may not do what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from kohort.client.administration.node_lookup import any_node, controller
from kohort.client.administration.request_router import Failure, Node, RequestRouter
from kohort.client.errors import kafka_error, raise_for
from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kohort.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kohort.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

__all__ = ["Acl", "AclFilter", "AclOperation", "AclPattern", "AclPermission", "AclResource", "Acls"]

F = TypeVar("F", DescribeAclsRequest, DeleteAclsRequest.Filter)

_Deleted: TypeAlias = DeleteAclsResponse.FilterResult.MatchingAcl

AclResource: TypeAlias = ResourceType
AclPattern: TypeAlias = PatternType
AclOperation: TypeAlias = Operation
AclPermission: TypeAlias = Permission


class Acl(NamedTuple):
    """A rule.

    Attributes:
        resource, name, pattern: what it is about; the literal name "*" is every resource of the type, and the cluster's
            name is "kafka-cluster".
        principal: who: "User:alice", or "User:*" for everyone.
        operation: what; READ, WRITE, DELETE and ALTER bring DESCRIBE with them, ALTER_CONFIGS brings DESCRIBE_CONFIGS.
        permission: a denial counts before any permission.
        host: from which address; "*" for all.
    """

    resource: AclResource
    name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern: AclPattern = AclPattern.LITERAL
    host: str = "*"


class AclFilter(NamedTuple):
    """Which rules; None and ANY match everything."""

    resource: AclResource = AclResource.ANY
    name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    pattern: AclPattern = AclPattern.ANY
    host: str | None = None


EVERY_ACL = AclFilter()


class Acls:
    """Access rules: `Admin.acls`. Errors and `timeout_ms` as in `Topics`; SECURITY_DISABLED without an authorizer."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(self, wanted: AclFilter = EVERY_ACL, *, timeout_ms: int | None = None) -> list[Acl]:
        """Returns the rules that match, sorted."""

        async def ask(node: Node, keys: Sequence[AclFilter]) -> Mapping[AclFilter, list[Acl]]:
            answer = await node.ask(_asked(DescribeAclsRequest, wanted), DescribeAclsResponse)
            raise_for(answer.error_code, answer.error_message)
            return {wanted: sorted(_described(answer))}

        found = await self._router.ask_nodes([wanted], any_node, ask, self._router.deadline(timeout_ms))
        return found.checked()[wanted]

    async def create(self, *acls: Acl, timeout_ms: int | None = None) -> None:
        """Adds rules; those that are there already stay.

        Raises:
            KafkaError: the only rule can't be: INVALID_REQUEST.
            PartialFailureError: some of several can't; the others are added.
        """

        async def ask(node: Node, keys: Sequence[Acl]) -> Mapping[Acl, Failure | None]:
            request = CreateAclsRequest(creations=[_creation(acl) for acl in keys])
            answer = await node.ask(request, CreateAclsResponse)
            return {
                acl: kafka_error(result.error_code, result.error_message) if result.error_code else None
                for acl, result in zip(keys, answer.results, strict=True)
            }

        wanted = list(dict.fromkeys(acls))
        (await self._router.ask_nodes(wanted, controller, ask, self._router.deadline(timeout_ms))).checked()

    async def delete(self, *wanted: AclFilter, timeout_ms: int | None = None) -> list[Acl]:
        """Removes the rules that match any of the filters, and returns them, sorted."""

        async def ask(node: Node, keys: Sequence[AclFilter]) -> Mapping[AclFilter, list[Acl] | Failure]:
            request = DeleteAclsRequest(filters=[_asked(DeleteAclsRequest.Filter, each) for each in keys])
            answer = await node.ask(request, DeleteAclsResponse)
            return {
                each: kafka_error(result.error_code, result.error_message)
                if result.error_code
                else list(_deleted(result))
                for each, result in zip(keys, answer.filter_results, strict=True)
            }

        filters = list(dict.fromkeys(wanted))
        found = await self._router.ask_nodes(filters, controller, ask, self._router.deadline(timeout_ms))
        return sorted({acl for acls in found.checked().values() for acl in acls})


def _asked(message: Callable[..., F], wanted: AclFilter) -> F:
    """A message that has a filter's fields: there are two."""
    return message(
        resource_type_filter=wanted.resource,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def _creation(acl: Acl) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=acl.resource,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _described(answer: DescribeAclsResponse) -> Iterable[Acl]:
    for resource in answer.resources:
        for acl in resource.acls:
            yield _found(resource, acl)


def _deleted(result: DeleteAclsResponse.FilterResult) -> Iterable[Acl]:
    for acl in result.matching_acls:
        raise_for(acl.error_code, acl.error_message)
        yield _found(acl, acl)


def _found(about: DescribeAclsResponse.Resource | _Deleted, acl: DescribeAclsResponse.Resource.Acl | _Deleted) -> Acl:
    return Acl(
        AclResource(about.resource_type),
        about.resource_name,
        acl.principal,
        AclOperation(acl.operation),
        AclPermission(acl.permission_type),
        AclPattern(about.pattern_type),
        acl.host,
    )
