"""InitializeShareGroupState: the group coordinator begins the state of share partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.share_state_requests import each_partition
from kohort.broker.turns import Slices
from kohort.coordinator.share_state import Outcome
from kohort.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

SERVED: Final = Served(InitializeShareGroupStateRequest, versions=(0, 0))

_Result = InitializeShareGroupStateResponse.Result
_Partition = _Result.Partition


def handle(
    request: InitializeShareGroupStateRequest, context: Context
) -> Slices[InitializeShareGroupStateResponse | Reply[InitializeShareGroupStateResponse]]:
    """Answers when all states are safe in the log."""
    coordinator = context.broker.share_state
    return (
        yield from each_partition(
            request,
            context,
            Outcome,
            lambda topic, place: coordinator.initialize(
                request.group_id, topic.topic_id, place.partition, place.state_epoch, place.start_offset
            ),
            lambda place, outcome: _Partition(
                partition=place.partition, error_code=outcome.error_code, error_message=outcome.message
            ),
            lambda topic_id, partitions: _Result(topic_id=topic_id, partitions=partitions),
            lambda results: InitializeShareGroupStateResponse(results=results),
        )
    )
