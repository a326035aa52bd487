"""InitializeShareGroupState: API 83."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class InitializeShareGroupStateRequest(Request, key=83, versions="0", flexible=0):
    """The group coordinator has the share coordinator set up state for share-partitions."""

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            state_epoch: int = int32("New state epoch of the share-partition; lower ones are fenced from then on.")
            start_offset: int = int64("Offset where delivery starts; -1 leaves the choice to the partition's leader.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in question.")

    group_id: str = string("The share group whose state is meant.")
    topics: list[Topic] = array(Topic, "Topics whose share-partitions get their first state or a reset.")


class InitializeShareGroupStateResponse(Response, key=83, versions="0", flexible=0):
    """Says which share-partitions the share coordinator has set up."""

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
