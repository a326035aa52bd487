"""ListPartitionReassignments: API 46."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class ListPartitionReassignmentsRequest(Request, key=46, versions="0", flexible=0):
    """Asks which partitions are being moved to other replicas at the moment."""

    class Topic(Struct):
        name: str = string("Name of the topic.")
        partition_indexes: tuple[int, ...] = array(int32, "Numbers of the partitions to look at.")

    timeout_ms: int = int32("How long the controller may take to answer, in ms.", default=60000)
    topics: list[Topic] | None = array(Topic, "Topics to look at; null = every move under way.", nullable=True)


class ListPartitionReassignmentsResponse(Response, key=46, versions="0", flexible=0):
    """Lists the moves under way with the replicas that come and go."""

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            replicas: tuple[int, ...] = array(int32, "Broker ids of all replicas now, those coming and going included.")
            adding_replicas: tuple[int, ...] = array(int32, "Broker ids that are to join the replicas.")
            removing_replicas: tuple[int, ...] = array(int32, "Broker ids to drop once the new replicas are in sync.")

        name: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic that are being moved.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    topics: list[Topic] = array(Topic, "Moves under way, by topic; topics without one are left out.")
