"""AlterShareGroupOffsets: API 91."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class AlterShareGroupOffsetsRequest(Request, key=91, versions="0", flexible=0):
    """An admin moves the point from which an empty share group reads its partitions."""

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            start_offset: int = int64("First offset that the group will deliver from now on.")

        topic_name: str = string("Name of the topic whose offsets are moved.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic, each with its new offset.")

    group_id: str = string("Share group whose offsets are moved; it must have no members.")
    topics: list[Topic] = array(Topic, "Topics in which offsets are moved.")


class AlterShareGroupOffsetsResponse(Response, key=91, versions="0", flexible=0):
    """Tells, for each partition, whether the share group's start offset was moved."""

    class TopicResponse(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null without an error.", nullable=True
            )

        topic_name: str = string("Name of the topic, as requested.")
        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "Outcome for every partition of the topic.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    responses: list[TopicResponse] = array(TopicResponse, "Outcome for every topic of the request.")
