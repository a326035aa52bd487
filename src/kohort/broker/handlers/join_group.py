"""JoinGroup: a member joins a classic group, and waits for the rebalance to complete."""

from __future__ import annotations

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Reply[JoinGroupResponse]:
    def refuse(code: ErrorCode) -> JoinGroupResponse:
        # Before v7, the protocol name can't be null.
        name = None if context.version >= 7 else ""
        return JoinGroupResponse(
            error_code=code, generation_id=-1, protocol_name=name, member_id=request.member_id, members=[]
        )

    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.classic.join(request, context.client, now, reply), refuse
    )
