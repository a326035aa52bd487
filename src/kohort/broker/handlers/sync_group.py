"""SyncGroup: the leader sends the assignments, and each member gets its own."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

SERVED: Final = Served(SyncGroupRequest, versions=(0, 5), max_items=ONE_STEP)

WITH_PROTOCOL: Final = 5
"""First version in which the member says which protocol it takes the group to have (KIP-559)."""


def handle(request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Reply[SyncGroupResponse]:
    """While the coordinator is loading, the member is told to join again."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if context.version >= WITH_PROTOCOL and not (request.protocol_type and request.protocol_name):
        return _refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.sync(request, context.client, now, reply), _refuse
    )


def _refuse(code: ErrorCode) -> SyncGroupResponse:
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    return SyncGroupResponse(error_code=code)
