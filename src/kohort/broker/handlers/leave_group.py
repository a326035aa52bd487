"""LeaveGroup: members leave a classic group, or are removed by an administrator."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

SERVED: Final = Served(LeaveGroupRequest, versions=(0, 5), max_items=ONE_STEP)


def handle(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse | Reply[LeaveGroupResponse]:
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.leave(request, context.client, now, reply), _refuse
    )


def _refuse(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
