"""ReadShareGroupState: API 84."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid_


class ReadShareGroupStateRequest(Request, key=84, versions="0", flexible=0):
    """A partition's leader loads a share-partition's saved state from the share coordinator."""

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            leader_epoch: int = int32("The asking leader's epoch; the share coordinator fences lower ones.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in question.")

    group_id: str = string("The share group whose state is meant.")
    topics: list[Topic] = array(Topic, "Topics whose share-partitions are to be loaded.")


class ReadShareGroupStateResponse(Response, key=84, versions="0", flexible=0):
    """Hands a partition's leader the saved delivery state of its share-partitions."""

    class Result(Struct):
        class Partition(Struct):
            class StateBatch(Struct):
                """A run of offsets in the same delivery state."""

                first_offset: int = int64("Where the run of records begins.")
                last_offset: int = int64("Where the run of records ends, inclusive.")
                delivery_state: int = int8("0 = available, 2 = acknowledged, 4 = archived.")
                delivery_count: int = int16("How often these records were handed to a consumer.")

            partition: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null without an error.", nullable=True
            )
            state_epoch: int = int32("Raised at each reinitialization; lower ones are fenced.")
            start_offset: int = int64("Oldest offset still in play; -1 = not set yet.")
            state_batches: list[StateBatch] = array(StateBatch, "Saved delivery state at or past StartOffset, in runs.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "How each of the topic's partitions fared.")

    results: list[Result] = array(Result, "One entry for each topic asked about.")
