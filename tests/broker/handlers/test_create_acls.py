"""CreateAcls."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_acls import CreateAclsRequest
from tests.broker.handlers.conftest import Ask, Deny

RULE = CreateAclsRequest.Creation(
    resource_type=2,
    resource_name="t",
    resource_pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


def test_without_an_authorizer(ask: Ask) -> None:
    results = ask(CreateAclsRequest(creations=[RULE, RULE])).results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert results[0].error_message == "No Authorizer is configured."


def test_who_may_not_alter_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    (result,) = ask(CreateAclsRequest(creations=[RULE])).results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
