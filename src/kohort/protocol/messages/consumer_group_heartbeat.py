"""ConsumerGroupHeartbeat: API 68."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, struct, uuid_


class TopicPartitions(Struct):
    """Assigned partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions.")


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0-1", flexible=0):
    """A consumer joins, stays in or leaves a group of the new protocol, saying what changed.

    - v1: SubscribedTopicRegex; the consumer must make up its own MemberId
    """

    class TopicPartition(Struct):
        """Partitions of one topic that the member owns."""

        topic_id: UUID = uuid_("The topic's id.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions it owns.")

    group_id: str = string("The group the member belongs to.")
    member_id: str = string("The member's id, the same for the life of the process; v0 may send it empty to join.")
    member_epoch: int = int32("Its member epoch; 0 = join, -1 = leave, -2 = static member leaves for a while.")
    instance_id: str | None = string("Id of a static member; null = dynamic member or unchanged.", nullable=True)
    rack_id: str | None = string("Rack the consumer runs in; null = none or unchanged.", nullable=True)
    rebalance_timeout_ms: int = int32(
        "How long the member may take to give up partitions, in ms; -1 = unchanged.", default=-1
    )
    subscribed_topic_names: tuple[str, ...] | None = array(
        string, "Names of the topics it subscribes to; null = unchanged.", nullable=True
    )
    subscribed_topic_regex: str | None = string(
        "Regex (RE2) of the topics it subscribes to; null = unchanged.", since=1, nullable=True
    )
    server_assignor: str | None = string(
        "Assignor the coordinator should use, such as uniform; null = no wish or unchanged.", nullable=True
    )
    topic_partitions: list[TopicPartition] | None = array(
        TopicPartition, "Partitions the member owns now; null = unchanged.", nullable=True
    )


class ConsumerGroupHeartbeatResponse(Response, key=68, versions="0-1", flexible=0):
    """The coordinator's answer: the member's epoch and, if it changed, its assignment."""

    class Assignment(Struct):
        """The whole assignment of the member at this moment."""

        topic_partitions: list[TopicPartitions] = array(
            TopicPartitions, "Partitions it may consume right away; any other it must give up."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    member_id: str | None = string("The member's id; in v0 the coordinator may have made it up.", nullable=True)
    member_epoch: int = int32("The member epoch to send in the next heartbeat.")
    heartbeat_interval_ms: int = int32("How long to wait until the next heartbeat, in ms.")
    assignment: Assignment | None = struct(
        Assignment, "What the member is to own now; null = nothing new.", nullable=True
    )
