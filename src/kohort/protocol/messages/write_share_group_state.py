"""WriteShareGroupState: API 85."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid_


class WriteShareGroupStateRequest(Request, key=85, versions="0-1", flexible=0):
    """A partition's leader saves changed delivery state with the share coordinator.

    - v1: saves how many deliveries are complete: DeliveryCompleteCount
    """

    class Topic(Struct):
        class Partition(Struct):
            class StateBatch(Struct):
                """A run of offsets in the same delivery state."""

                first_offset: int = int64("Where the run of records begins.")
                last_offset: int = int64("Where the run of records ends, inclusive.")
                delivery_state: int = int8("0 = available, 2 = acknowledged, 4 = archived.")
                delivery_count: int = int16("How often these records were handed to a consumer.")

            partition: int = int32("The partition's number within its topic.")
            state_epoch: int = int32("State epoch the leader works with; an outdated one is refused.")
            leader_epoch: int = int32("The asking leader's epoch; the share coordinator fences lower ones.")
            start_offset: int = int64("Oldest offset still in play; -1 leaves the saved one as it is.")
            delivery_complete_count: int = int32(
                "How many offsets from StartOffset on are acknowledged or archived; -1 = unknown.",
                since=1,
                default=-1,
                ignorable=True,
            )
            state_batches: list[StateBatch] = array(StateBatch, "Changed delivery state only, in runs of offsets.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in question.")

    group_id: str = string("The share group whose state is meant.")
    topics: list[Topic] = array(Topic, "Topics whose share-partitions have changes to save.")


class WriteShareGroupStateResponse(Response, key=85, versions="0-1", flexible=0):
    """Says which share-partitions' state was saved."""

    class Result(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null without an error.", nullable=True
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "How each of the topic's partitions fared.")

    results: list[Result] = array(Result, "One entry for each topic asked about.")
