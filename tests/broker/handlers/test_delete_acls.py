"""DeleteAcls: what any filter finds is gone at once, and each filter's result names what it found."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.access_rules import MAX_CHANGES
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.log.slices import in_one_go
from kohort.protocol.access_types import PatternType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from kohort.security.acls import Acl, AclFilter
from tests.broker.handlers.acls import ADMIN, AUTHORIZED, GROUPS, READS, WRITES, deletion
from tests.broker.handlers.conftest import Ask, Deny

authorized = pytest.mark.parametrize("settings", [AUTHORIZED])


def delete(ask: Ask, *filters: AclFilter) -> Any:
    return ask(DeleteAclsRequest(filters=[deletion(each) for each in filters]), principal=ADMIN).filter_results


def left(broker: Broker) -> list[Acl]:
    assert broker.access_rules is not None
    return in_one_go(broker.access_rules.matching(AclFilter()))


@authorized
def test_deletes_what_is_found(ask: Ask, rules_broker: Broker) -> None:
    exact = AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL)
    results = delete(ask, exact, AclFilter(ResourceType.TOPIC), AclFilter(name="absent"))
    assert [[acl.resource_name for acl in result.matching_acls] for result in results] == [
        ["orders"],
        ["orders", "ord"],
        [],
    ]
    assert all(result.error_code == 0 for result in results)
    assert left(rules_broker) == [GROUPS]
    assert rules_broker.authorizer is not None
    assert not rules_broker.authorizer.allowed("User:alice", "::1", Operation.READ, ResourceType.TOPIC, "orders")


@authorized
def test_a_filter_that_is_not_understood_keeps_nothing_else_from_it(ask: Ask, rules_broker: Broker) -> None:
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(operation=77), deletion(AclFilter(name="orders"))])
    bad, good = ask(request, principal=ADMIN).filter_results
    assert bad.error_code == ErrorCode.INVALID_REQUEST
    assert [acl.resource_name for acl in good.matching_acls] == ["orders"]
    assert left(rules_broker) == [WRITES, GROUPS]


@authorized
def test_too_many_at_once(ask: Ask, rules_broker: Broker) -> None:
    rules = rules_broker.access_rules
    assert rules is not None
    rules.add([READS._replace(name=str(number)) for number in range(MAX_CHANGES)])
    (result,) = delete(ask, AclFilter())
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert len(rules) == MAX_CHANGES + 3


def test_without_an_authorizer(ask: Ask) -> None:
    results = delete(ask, AclFilter(), AclFilter())
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert results[0].error_message == "No Authorizer is configured."


def test_who_may_not_alter_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    (result,) = delete(ask, AclFilter())
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
