"""ReadShareGroupStateSummary: offsets and epochs of share partitions, without their batches."""

from __future__ import annotations

from typing import Any, Final

from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.share_state_requests import each_partition
from kohort.broker.turns import Slices
from kohort.coordinator.share_state import Summary
from kohort.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

SERVED: Final = Served(ReadShareGroupStateSummaryRequest, versions=(0, 1))

_Result = ReadShareGroupStateSummaryResponse.Result
_Partition = _Result.Partition


def handle(
    request: ReadShareGroupStateSummaryRequest, context: Context
) -> Slices[ReadShareGroupStateSummaryResponse | Reply[ReadShareGroupStateSummaryResponse]]:
    """Leader epochs of the request are not checked: the group coordinator doesn't know them."""
    coordinator = context.broker.share_state
    return (
        yield from each_partition(
            request,
            context,
            Summary,
            lambda topic, place: coordinator.read_summary(request.group_id, topic.topic_id, place.partition),
            _result,
            lambda topic_id, partitions: _Result(topic_id=topic_id, partitions=partitions),
            lambda results: ReadShareGroupStateSummaryResponse(results=results),
        )
    )


def _result(place: Any, summary: Summary) -> _Partition:
    return _Partition(
        partition=place.partition,
        error_code=summary.error_code,
        error_message=summary.message,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )
