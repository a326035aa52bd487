"""JoinGroup: a member joins a classic group, and waits for the rebalance to complete."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

SERVED: Final = Served(JoinGroupRequest, versions=(0, 9), max_items=ONE_STEP)

NULLABLE_PROTOCOL: Final = 7
"""First version in which the protocol's name may be null."""


def handle(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Reply[JoinGroupResponse]:
    def refuse(code: ErrorCode) -> JoinGroupResponse:
        name = None if context.version >= NULLABLE_PROTOCOL else ""
        return JoinGroupResponse(
            error_code=code, generation_id=-1, protocol_name=name, member_id=request.member_id, members=[]
        )

    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.join(request, context.client, now, reply), refuse
    )
