"""AlterPartitionReassignments: API 45."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible=0):
    """Starts moving partitions to other replicas, or cancels moves that are under way.

    - v1: AllowReplicationFactorChange
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            replicas: tuple[int, ...] | None = array(
                int32, "Target broker ids, preferred leader first; null cancels the move under way.", nullable=True
            )

        name: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic with their targets.")

    timeout_ms: int = int32("How long the controller may take to accept the request, in ms.", default=60000)
    allow_replication_factor_change: bool = boolean(
        "False to refuse a move that alters the number of replicas.", since=1, default=True
    )
    topics: list[Topic] = array(Topic, "Partitions to move, by topic.")


class AlterPartitionReassignmentsResponse(Response, key=45, versions="0-1", flexible=0):
    """Says for each partition whether its move was accepted or cancelled.

    - v1: AllowReplicationFactorChange
    """

    class TopicResponse(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why it failed, for people; null without an error.", nullable=True, default=""
            )

        name: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "One outcome per partition of the topic.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    allow_replication_factor_change: bool = boolean(
        "Whether moves could alter the number of replicas, as the request asked.", since=1, default=True, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    responses: list[TopicResponse] = array(TopicResponse, "Outcomes by topic.")
