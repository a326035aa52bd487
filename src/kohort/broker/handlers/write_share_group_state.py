"""WriteShareGroupState: a partition's leader writes what has changed in the state of share partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.broker.share_state_requests import each_partition
from kohort.broker.turns import Slices
from kohort.coordinator.share_state import Outcome, StateBatch
from kohort.protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

SERVED: Final = Served(WriteShareGroupStateRequest, versions=(0, 1), max_items=ONE_STEP)

_Result = WriteShareGroupStateResponse.Result
_Partition = _Result.Partition


def handle(
    request: WriteShareGroupStateRequest, context: Context
) -> Slices[WriteShareGroupStateResponse | Reply[WriteShareGroupStateResponse]]:
    """Answers when all changes are safe in the log."""
    coordinator = context.broker.share_state
    return (
        yield from each_partition(
            request,
            context,
            Outcome,
            lambda topic, place: coordinator.write(
                request.group_id,
                topic.topic_id,
                place.partition,
                place.state_epoch,
                place.leader_epoch,
                place.start_offset,
                place.delivery_complete_count,
                [
                    StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                    for each in place.state_batches
                ],
            ),
            lambda place, outcome: _Partition(
                partition=place.partition, error_code=outcome.error_code, error_message=outcome.message
            ),
            lambda topic_id, partitions: _Result(topic_id=topic_id, partitions=partitions),
            lambda results: WriteShareGroupStateResponse(results=results),
        )
    )
