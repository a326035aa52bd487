"""OffsetDelete: API 47."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class OffsetDeleteRequest(Request, key=47, versions="0"):
    """Deletes a group's committed offsets for topics that it no longer consumes."""

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")

        name: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic to forget.")

    group_id: str = string("The group whose committed offsets go.")
    topics: list[Topic] = array(Topic, "Partitions to forget, by topic.")


class OffsetDeleteResponse(Response, key=47, versions="0"):
    """Says for each partition whether the group's committed offset was deleted."""

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")

        name: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "One outcome per partition of the topic.")

    error_code: int = int16("0, or the error that failed the whole request.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    topics: list[Topic] = array(Topic, "Outcomes by topic; empty if the whole request failed.")
