"""ListGroups: groups by state and type."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

SERVED: Final = Served(ListGroupsRequest, versions=(0, 5), max_items=ONE_STEP)


def handle(request: ListGroupsRequest, context: Context) -> Slices[ListGroupsResponse]:
    """Lists the groups of all shards; refused while one is loading, as its groups would be missing."""
    groups = context.broker.groups
    if groups.loading():
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    everything = context.cluster_allowed(Operation.DESCRIBE, audited=False)
    listed = []
    for shard in groups.active():
        yield
        for group in shard.list_groups(request.states_filter, request.types_filter):
            if everything or context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, audited=False):
                listed.append(group)
            yield
    return ListGroupsResponse(groups=listed)
