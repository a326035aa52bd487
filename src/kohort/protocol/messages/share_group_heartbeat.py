"""ShareGroupHeartbeat: API 76."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, struct, uuid_


class TopicPartitions(Struct):
    """Assigned partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions.")


class ShareGroupHeartbeatRequest(Request, key=76, versions="1", flexible=1):
    """A consumer joins, stays in or leaves a share group, saying what changed.

    - v1: the first stable version
    """

    group_id: str = string("The share group the member belongs to.")
    member_id: str = string("Id the consumer made up, the same for the life of the process.")
    member_epoch: int = int32("Its member epoch; 0 = join, -1 = leave.")
    rack_id: str | None = string("Rack the consumer runs in; null = none or unchanged.", nullable=True)
    subscribed_topic_names: tuple[str, ...] | None = array(
        string, "Names of the topics it subscribes to; null = unchanged.", nullable=True
    )


class ShareGroupHeartbeatResponse(Response, key=76, versions="1", flexible=1):
    """The coordinator's answer: the member's epoch and, if it changed, its assignment.

    - v1: the first stable version
    """

    class Assignment(Struct):
        """The whole assignment of the member at this moment."""

        topic_partitions: list[TopicPartitions] = array(
            TopicPartitions, "The member's partitions; other members may share them."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    member_id: str | None = string("The member's id, as in the request.", nullable=True)
    member_epoch: int = int32("The member epoch to send in the next heartbeat.")
    heartbeat_interval_ms: int = int32("How long to wait until the next heartbeat, in ms.")
    assignment: Assignment | None = struct(
        Assignment, "What the member is to fetch from; null = nothing new.", nullable=True
    )
