"""DeleteShareGroupState: API 86."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, uuid_


class DeleteShareGroupStateRequest(Request, key=86, versions="0", flexible=0):
    """The group coordinator has the share coordinator forget the state of share-partitions."""

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in question.")

    group_id: str = string("The share group whose state is meant.")
    topics: list[Topic] = array(Topic, "Topics whose share-partitions are to be forgotten.")


class DeleteShareGroupStateResponse(Response, key=86, versions="0", flexible=0):
    """Says which share-partitions' state was deleted."""

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
