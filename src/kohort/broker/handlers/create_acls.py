"""CreateAcls: adds access rules."""

from __future__ import annotations

import logging
from typing import Final

from kohort.broker.admin.acls import NO_AUTHORIZER, requested_rule
from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kohort.security.acls import Acl

SERVED: Final = Served(CreateAclsRequest, versions=(1, 3), max_items=ONE_STEP)

log = logging.getLogger("kohort.broker.admin")

Result = CreateAclsResponse.Result


def handle(request: CreateAclsRequest, context: Context) -> Slices[CreateAclsResponse]:
    """Adds all the rules that can be, at once; those that are there already stay."""
    rules = context.broker.access_rules
    if not context.cluster_allowed(Operation.ALTER):
        return _refused(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if rules is None:
        return _refused(request, NO_AUTHORIZER)
    outcomes: list[Acl | KafkaError] = []
    for creation in request.creations:
        try:
            outcomes.append(requested_rule(creation))
        except KafkaError as error:
            outcomes.append(error)
        yield
    acls = [outcome for outcome in outcomes if isinstance(outcome, Acl)]
    failed: KafkaError | None = None
    try:
        if added := rules.add(acls):
            log.info("access rules added count=%d principal=%s", added, context.session.principal)
    except KafkaError as error:
        failed = error
    return CreateAclsResponse(
        results=[_result(failed if isinstance(outcome, Acl) else outcome) for outcome in outcomes]
    )


def _refused(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(error)] * len(request.creations))


def _result(error: KafkaError | None) -> Result:
    if error is None:
        return Result(error_message=None)
    return Result(error_code=error.code, error_message=error.detail)
