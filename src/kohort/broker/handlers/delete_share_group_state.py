"""DeleteShareGroupState: the group coordinator deletes the state of share partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.share_state_requests import each_partition
from kohort.broker.turns import Slices
from kohort.coordinator.share_state import Outcome
from kohort.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)

SERVED: Final = Served(DeleteShareGroupStateRequest, versions=(0, 0))

_Result = DeleteShareGroupStateResponse.Result
_Partition = _Result.Partition


def handle(
    request: DeleteShareGroupStateRequest, context: Context
) -> Slices[DeleteShareGroupStateResponse | Reply[DeleteShareGroupStateResponse]]:
    """Answers when all tombstones are safe in the log."""
    coordinator = context.broker.share_state
    return (
        yield from each_partition(
            request,
            context,
            Outcome,
            lambda topic, place: coordinator.delete(request.group_id, topic.topic_id, place.partition),
            lambda place, outcome: _Partition(
                partition=place.partition, error_code=outcome.error_code, error_message=outcome.message
            ),
            lambda topic_id, partitions: _Result(topic_id=topic_id, partitions=partitions),
            lambda results: DeleteShareGroupStateResponse(results=results),
        )
    )
