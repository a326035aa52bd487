"""DeleteTopics: API 20."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, uuid_


class DeleteTopicsRequest(Request, key=20, versions="1-6", flexible=4):
    """An admin client has topics deleted, by name or by id.

    - v2: same layout; brokers answer first and throttle afterwards
    - v3: same layout; may answer TOPIC_DELETION_DISABLED
    - v4: flexible
    - v5: same layout; may answer THROTTLING_QUOTA_EXCEEDED (KIP-599)
    - v6: Topics replaces TopicNames, so that topics can be deleted by id
    """

    class Topic(Struct):
        """One topic to delete: a name or an id, not both."""

        name: str | None = string("Name of the topic to delete; null when its id is given.", nullable=True)
        topic_id: UUID = uuid_("Id of the topic to delete; all zeros when its name is given.")

    topics: list[Topic] = array(Topic, "Topics to delete, each given by name or by id.", since=6)
    topic_names: tuple[str, ...] = array(string, "Topics to delete, given by name only.", until=5, ignorable=True)
    timeout_ms: int = int32("How long the broker may wait for the controller to delete them, in ms.")


class DeleteTopicsResponse(Response, key=20, versions="1-6", flexible=4):
    """Says for each topic whether it was deleted.

    - v1: ThrottleTimeMs
    - v4: flexible
    - v5: ErrorMessage
    - v6: TopicId; Name may be null
    """

    class TopicResponse(Struct):
        name: str | None = string(
            "Name of the topic; null if asked by an id that is unknown or hidden.", nullable_since=6, default=""
        )
        topic_id: UUID = uuid_("The topic's id.", since=6, ignorable=True)
        error_code: int = int16("0, or why this topic was not deleted.")
        error_message: str | None = string(
            "Why this topic was not deleted, for people; null on success.", since=5, nullable=True, ignorable=True
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    responses: list[TopicResponse] = array(TopicResponse, "One outcome per topic of the request.")
