"""DeleteAcls."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from tests.broker.handlers.conftest import Ask, Deny

ANY = DeleteAclsRequest.Filter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def test_without_an_authorizer(ask: Ask) -> None:
    results = ask(DeleteAclsRequest(filters=[ANY, ANY])).filter_results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert results[0].error_message == "No Authorizer is configured."


def test_who_may_not_alter_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    (result,) = ask(DeleteAclsRequest(filters=[ANY])).filter_results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
