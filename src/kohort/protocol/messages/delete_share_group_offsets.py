"""DeleteShareGroupOffsets: API 92."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, uuid_


class DeleteShareGroupOffsetsRequest(Request, key=92, versions="0", flexible=0):
    """An admin makes an empty share group forget its offsets and state for whole topics."""

    class Topic(Struct):
        topic_name: str = string("Name of the topic to forget, with all its partitions.")

    group_id: str = string("Share group that shall forget; it must have no members.")
    topics: list[Topic] = array(Topic, "Topics that the group shall forget.")


class DeleteShareGroupOffsetsResponse(Response, key=92, versions="0", flexible=0):
    """Tells, for each topic, whether the share group has forgotten its offsets."""

    class TopicResponse(Struct):
        topic_name: str = string("Name of the topic, as requested.")
        topic_id: UUID = uuid_("The topic's id.")
        error_code: int = int16("0, or why this topic failed.")
        error_message: str | None = string("Why this topic failed, for people; null without an error.", nullable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    responses: list[TopicResponse] = array(TopicResponse, "Outcome for every topic of the request.")
