"""OffsetForLeaderEpoch: API 23."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(Request, key=23, versions="2-4", flexible=4):
    """A follower or consumer asks where leader epochs end, so as to detect truncated logs.

    - v2: CurrentLeaderEpoch, for fencing
    - v3: ReplicaId
    - v4: flexible
    """

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            current_leader_epoch: int = int32(
                "Leader epoch the asker believes is current, for fencing; -1 = no check.", default=-1, ignorable=True
            )
            leader_epoch: int = int32("Epoch whose end is asked for, usually that of the asker's last record.")

        topic: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "Partitions to look epochs up in; the broker must lead them.")

    replica_id: int = int32(
        "Broker id of the asking follower; -1 = a consumer, -2 = a debugging client.",
        since=3,
        default=-2,
        ignorable=True,
    )
    topics: list[Topic] = array(Topic, "Topics to look epochs up in.")


class OffsetForLeaderEpochResponse(Response, key=23, versions="2-4", flexible=4):
    """Tells where each epoch ends in the leader's log.

    - v2: ThrottleTimeMs
    - v4: flexible
    """

    class Topic(Struct):
        class Partition(Struct):
            """Where an epoch ends in one partition."""

            error_code: int = int16("0, or why this partition failed.")
            partition: int = int32("The partition's number within its topic.")
            leader_epoch: int = int32(
                "Largest epoch in the log not above the one asked for; -1 = none.", default=-1, ignorable=True
            )
            end_offset: int = int64("Offset after the last record of that epoch; -1 = unknown.", default=-1)

        topic: str = string("Name of the topic.")
        partitions: list[Partition] = array(Partition, "Answers for the topic's partitions.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    topics: list[Topic] = array(Topic, "Answers, by topic.")
