"""ElectLeaders: API 43."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible=2):
    """Asks the controller to elect leaders for partitions, preferred or unclean.

    - v1: ElectionType: unclean elections as well as preferred ones
    - v2: flexible
    """

    class TopicPartition(Struct):
        topic: str = string("Name of the topic.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions that need a leader.")

    election_type: int = int8("0 = preferred replica, 1 = unclean: a live replica when none is in sync.", since=1)
    topic_partitions: list[TopicPartition] | None = array(
        TopicPartition, "Partitions that need an election, by topic; null = all there are.", nullable=True, default=[]
    )
    timeout_ms: int = int32("How long the controller may take over the elections, in ms.", default=60000)


class ElectLeadersResponse(Response, key=43, versions="0-2", flexible=2):
    """Says for each partition how its leader election went.

    - v1: ErrorCode for the whole request
    - v2: flexible
    """

    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why no leader was elected here.")
            error_message: str | None = string(
                "Why it failed, for people; null without an error.", nullable=True, default=""
            )

        topic: str = string("Name of the topic.")
        partition_result: list[PartitionResult] = array(PartitionResult, "One outcome per partition of the topic.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.", since=1)
    replica_election_results: list[ReplicaElectionResult] = array(
        ReplicaElectionResult, "Outcomes by topic; empty if all were asked for without the right to."
    )
