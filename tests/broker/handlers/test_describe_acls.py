"""DescribeAcls."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_acls import DescribeAclsRequest
from tests.broker.handlers.conftest import Ask, Deny

ANY = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def test_without_an_authorizer(ask: Ask) -> None:
    response = ask(ANY)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured."
    assert response.resources == []


def test_who_may_not_describe_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE)
    assert ask(ANY).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
