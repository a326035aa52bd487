"""ReadShareGroupState: a partition's leader reads the state of share partitions."""

from __future__ import annotations

from typing import Any, Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.share_state_requests import each_partition
from kohort.broker.turns import Slices
from kohort.coordinator.share_state import ReadOutcome
from kohort.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

SERVED: Final = Served(ReadShareGroupStateRequest, versions=(0, 0))

_Result = ReadShareGroupStateResponse.Result
_Partition = _Result.Partition


def handle(
    request: ReadShareGroupStateRequest, context: Context
) -> Slices[ReadShareGroupStateResponse | Reply[ReadShareGroupStateResponse]]:
    """Answers when the new leader epochs are safe in the log."""
    coordinator = context.broker.share_state
    return (
        yield from each_partition(
            request,
            context,
            ReadOutcome,
            lambda topic, place: coordinator.read(
                request.group_id, topic.topic_id, place.partition, place.leader_epoch
            ),
            _result,
            lambda topic_id, partitions: _Result(topic_id=topic_id, partitions=partitions),
            lambda results: ReadShareGroupStateResponse(results=results),
        )
    )


def _result(place: Any, read: ReadOutcome) -> _Partition:
    return _Partition(
        partition=place.partition,
        error_code=read.error_code,
        error_message=read.message,
        state_epoch=read.state_epoch,
        start_offset=read.start_offset,
        state_batches=[_Partition.StateBatch(**batch._asdict()) for batch in read.batches],
    )
