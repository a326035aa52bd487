"""DescribeShareGroupOffsets: API 90."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class DescribeShareGroupOffsetsRequest(Request, key=90, versions="0-1", flexible=0):
    """Asks the group coordinator how far share groups have come in their topics.

    - v1: same bytes; the response has lags
    """

    class Group(Struct):
        class Topic(Struct):
            topic_name: str = string("Name of the topic of interest.")
            partitions: tuple[int, ...] = array(int32, "Partition numbers of interest within the topic.")

        group_id: str = string("The share group to look up.")
        topics: list[Topic] | None = array(
            Topic, "Topics of interest; null = every one the group has state for.", nullable=True, default=[]
        )

    groups: list[Group] = array(Group, "Share groups to look up.")


class DescribeShareGroupOffsetsResponse(Response, key=90, versions="0-1", flexible=0):
    """Start offset and lag of each share-partition of share groups.

    - v1: tells how far behind the group is: Lag
    """

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = int32("The partition's number within its topic.")
                start_offset: int = int64("Oldest offset still in play; -1 = not set yet.")
                leader_epoch: int = int32("Leader epoch saved with the share-partition's state.")
                lag: int = int64(
                    "Records whose delivery is not complete; -1 = unknown.", since=1, default=-1, ignorable=True
                )
                error_code: int = int16("0, or why this partition failed.")
                error_message: str | None = string(
                    "Why this partition failed, for people; null without an error.", nullable=True
                )

            topic_name: str = string("Name of the topic.")
            topic_id: UUID = uuid_("The topic's id.")
            partitions: list[Partition] = array(Partition, "Where the group stands in each partition.")

        group_id: str = string("The share group described.")
        topics: list[Topic] = array(Topic, "Where the group stands in each topic.")
        error_code: int = int16("0, or why this group failed.")
        error_message: str | None = string("Why this group failed, for people; null without an error.", nullable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    groups: list[Group] = array(Group, "One entry for each group asked about.")
