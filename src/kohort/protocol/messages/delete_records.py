"""DeleteRecords: API 21."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible=2):
    """Asks partition leaders to drop all records below given offsets.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            offset: int = int64("First offset to keep; -1 = the high watermark, so all committed records go.")

        name: str = string("Name of the topic to trim.")
        partitions: list[Partition] = array(Partition, "Partitions to trim; the broker must lead them.")

    topics: list[Topic] = array(Topic, "Topics whose oldest records are to go.")
    timeout_ms: int = int32("How long to wait until every live replica has moved its log start, in ms.")


class DeleteRecordsResponse(Response, key=21, versions="0-2", flexible=2):
    """Gives the low watermark that each trimmed partition has reached.

    - v2: flexible
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            low_watermark: int = int64("Smallest log start offset among the live replicas; -1 on an error.")
            error_code: int = int16("0, or why this partition failed.")

        name: str = string("Name of the trimmed topic.")
        partitions: list[Partition] = array(Partition, "Outcomes of the topic's partitions.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    topics: list[Topic] = array(Topic, "Outcomes, by topic.")
