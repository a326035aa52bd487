"""StreamsGroupTopologyDescriptionUpdate: a member of a streams group describes its topology (KIP-1331)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

SERVED: Final = Served(StreamsGroupTopologyDescriptionUpdateRequest, versions=(0, 0))

Response = StreamsGroupTopologyDescriptionUpdateResponse


def handle(request: StreamsGroupTopologyDescriptionUpdateRequest, context: Context) -> Response:
    """Keeps the description until the group's topology changes, or the broker stops."""
    groups = context.broker.groups
    if not groups.offered("streams"):
        return Response(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return Response(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        groups.entry(request.group_id).shard.streams.describe_topology(request)
    except KafkaError as error:
        return Response(error_code=error.code, error_message=error.detail or None)
    return Response()
