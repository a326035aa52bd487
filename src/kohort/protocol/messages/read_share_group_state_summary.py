"""ReadShareGroupStateSummary: API 87."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class ReadShareGroupStateSummaryRequest(Request, key=87, versions="0-1", flexible=0):
    """Asks the share coordinator for share-partitions' offsets and epochs without their batches.

    - v1: same bytes; the response counts completed deliveries
    """

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            leader_epoch: int = int32("Leader epoch of the partition as the asker knows it.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in question.")

    group_id: str = string("The share group whose state is meant.")
    topics: list[Topic] = array(Topic, "Topics whose share-partitions are to be summed up.")


class ReadShareGroupStateSummaryResponse(Response, key=87, versions="0-1", flexible=0):
    """Offsets and epochs of share-partitions, without the batches in flight.

    - v1: counts completed deliveries: DeliveryCompleteCount
    """

    class Result(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null without an error.", nullable=True
            )
            state_epoch: int = int32("Raised at each reinitialization; lower ones are fenced.")
            leader_epoch: int = int32("Newest leader epoch the share coordinator has seen.")
            start_offset: int = int64("Oldest offset still in play; -1 = not set yet.")
            delivery_complete_count: int = int32(
                "How many offsets from StartOffset on are acknowledged or archived; -1 = unknown.",
                since=1,
                default=-1,
                ignorable=True,
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "How each of the topic's partitions fared.")

    results: list[Result] = array(Result, "One entry for each topic asked about.")
