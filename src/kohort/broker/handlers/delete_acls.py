"""DeleteAcls: removes the access rules that match any of some filters."""

from __future__ import annotations

import logging
from typing import Final

from kohort.broker.access_rules import MAX_CHANGES
from kohort.broker.admin.acls import NO_AUTHORIZER, requested_filter
from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kohort.security.acls import Acl

SERVED: Final = Served(DeleteAclsRequest, versions=(1, 3), max_items=ONE_STEP)

log = logging.getLogger("kohort.broker.admin")

Result = DeleteAclsResponse.FilterResult


def handle(request: DeleteAclsRequest, context: Context) -> Slices[DeleteAclsResponse]:
    """Removes what any filter finds, at once; a rule is in the result of each filter that found it."""
    rules = context.broker.access_rules
    try:
        if not context.cluster_allowed(Operation.ALTER):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if rules is None:
            raise NO_AUTHORIZER
        found: dict[Acl, None] = {}
        results = []
        for each in request.filters:
            yield
            try:
                acls = yield from rules.matching(requested_filter(each))
            except KafkaError as error:
                results.append(_failed(error))
                continue
            found.update(dict.fromkeys(acls))
            if len(found) > MAX_CHANGES:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"At most {MAX_CHANGES} rules can be removed at once.")
            results.append(Result(error_message=None, matching_acls=[_removed(acl) for acl in acls]))
        rules.remove(list(found))
    except KafkaError as error:
        return DeleteAclsResponse(filter_results=[_failed(error)] * len(request.filters))
    if found:
        log.info("access rules removed count=%d principal=%s", len(found), context.session.principal)
    return DeleteAclsResponse(filter_results=results)


def _failed(error: KafkaError) -> Result:
    return Result(error_code=error.code, error_message=error.detail)


def _removed(acl: Acl) -> Result.MatchingAcl:
    return Result.MatchingAcl(
        error_message=None,
        resource_type=acl.kind,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
