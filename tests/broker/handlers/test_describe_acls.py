"""DescribeAcls: the rules that a filter finds, by what they are about."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.access_types import PatternType, Permission, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_acls import DescribeAclsRequest
from kohort.security.acls import Acl, AclFilter
from tests.broker.handlers.acls import ADMIN, AUTHORIZED, GROUPS, READS, WRITES, describe
from tests.broker.handlers.conftest import Ask, Deny

authorized = pytest.mark.parametrize("settings", [AUTHORIZED])


def found(ask: Ask, wanted: AclFilter, version: int = 3) -> list[Acl]:
    response = ask(describe(wanted), version, principal=ADMIN)
    assert (response.error_code, response.error_message) == (0, None)
    return [
        Acl(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            Operation(acl.operation),
            Permission(acl.permission_type),
        )
        for resource in response.resources
        for acl in resource.acls
    ]


@authorized
@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_of_them(version: int, ask: Ask, rules_broker: Broker) -> None:
    assert found(ask, AclFilter(), version) == [READS, WRITES, GROUPS]


@authorized
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL), [READS]),
        (AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH), [READS, WRITES]),
        (AclFilter(ResourceType.TOPIC, "absent", PatternType.LITERAL), []),
        (AclFilter(permission=Permission.DENY), [GROUPS]),
    ],
)
def test_some_of_them(wanted: AclFilter, expected: list[Acl], ask: Ask, rules_broker: Broker) -> None:
    assert found(ask, wanted) == expected


@authorized
def test_rules_about_the_same_are_together(ask: Ask, rules_broker: Broker) -> None:
    assert rules_broker.access_rules is not None
    rules_broker.access_rules.add([READS._replace(host="::1")])
    (resource,) = ask(describe(AclFilter(name="orders")), principal=ADMIN).resources
    assert [acl.host for acl in resource.acls] == ["*", "::1"]


@authorized
def test_a_filter_that_is_not_understood(ask: Ask) -> None:
    response = ask(DescribeAclsRequest(operation=77), principal=ADMIN)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message


def test_without_an_authorizer(ask: Ask) -> None:
    response = ask(describe(AclFilter()))
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured."
    assert response.resources == []


def test_who_may_not_describe_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE)
    assert ask(describe(AclFilter())).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
