"""ListOffsets: API 2."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string


class ListOffsetsRequest(Request, key=2, versions="1-11", flexible=6):
    """Looks up offsets by time, or the ends of partitions, at their leaders.

    - v2: IsolationLevel; the response has a throttle time
    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: CurrentLeaderEpoch, to fence stale clients
    - v5: no change on the wire: OFFSET_NOT_AVAILABLE may come back
    - v6: flexible
    - v7: no change on the wire: timestamp -3 (record with the largest timestamp)
    - v8: no change on the wire: timestamp -4 (start of the leader's local log)
    - v9: no change on the wire: timestamp -5 (last offset in tiered storage)
    - v10: TimeoutMs
    - v11: no change on the wire: timestamp -6 (first offset not yet in tiered storage)
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            current_leader_epoch: int = int32(
                "Leader epoch the sender goes by; -1 turns the check off.", since=4, default=-1, ignorable=True
            )
            timestamp: int = int64("Ms since 1970, or -1 latest, -2 earliest, -3 max, -4 local, -5 tiered, -6 pending.")

        name: str = string("Name of the topic to look in.")
        partitions: list[Partition] = array(Partition, "What to look up, by partition.")

    replica_id: int = int32("Node id of the asking broker; -1 for a client, -2 for a debugging one.")
    isolation_level: int = int8("0 = the latest is the high watermark, 1 = it is the last stable offset.", since=2)
    topics: list[Topic] = array(Topic, "What to look up, by topic.")
    timeout_ms: int = int32(
        "How long the broker may take to look into tiered storage, in ms.", since=10, ignorable=True
    )


class ListOffsetsResponse(Response, key=2, versions="1-11", flexible=6):
    """The offset found in each partition.

    - v2: ThrottleTimeMs
    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: LeaderEpoch
    - v5: no change on the wire: OFFSET_NOT_AVAILABLE may come back
    - v6: flexible
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            timestamp: int = int64(
                "Timestamp of the record found, in ms; -1 if none, or for an end of the log.", default=-1
            )
            offset: int = int64("The offset found; -1 if no record matches.", default=-1)
            leader_epoch: int = int32(
                "Leader epoch of the record at that offset; -1 if not known.", since=4, default=-1
            )

        name: str = string("Name of the topic looked in.")
        partitions: list[Partition] = array(Partition, "The offsets found, by partition.")

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=2, ignorable=True
    )
    topics: list[Topic] = array(Topic, "The offsets found, by topic.")
