"""DeleteGroups: deletes empty groups with their offsets, and share groups with the states of their partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply, when_replied
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

SERVED: Final = Served(DeleteGroupsRequest, versions=(0, 3))

_Result = DeleteGroupsResponse.Result

_REASONS: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such group.",
    ErrorCode.NON_EMPTY_GROUP: "The group has members.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The client may not delete the group.",
}


def handle(
    request: DeleteGroupsRequest, context: Context
) -> Slices[DeleteGroupsResponse | Reply[DeleteGroupsResponse]]:
    """Responds once all groups are done."""
    reply: Reply[DeleteGroupsResponse] = Reply()
    results: dict[str, _Result] = {}
    names = list(dict.fromkeys(request.groups_names))

    def receive(outcomes: list[_Result]) -> None:
        for outcome in outcomes:
            outcome.error_message = outcome.error_message or _REASONS.get(ErrorCode(outcome.error_code))
            results[outcome.group_id] = outcome
        if len(results) == len(names):
            reply(DeleteGroupsResponse(results=[results[name] for name in names]))

    for name in names:
        when_replied(_delete(name, context), receive)
        yield
    return reply if names else DeleteGroupsResponse(results=[])


def _delete(name: str, context: Context) -> list[_Result] | Reply[list[_Result]]:
    if not context.allowed(Operation.DELETE, ResourceType.GROUP, name):
        return [_Result(group_id=name, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    return context.broker.share_group_states.delete_group(name)
