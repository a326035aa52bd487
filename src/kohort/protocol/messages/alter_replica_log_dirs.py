"""AlterReplicaLogDirs: API 34."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class AlterReplicaLogDirsRequest(Request, key=34, versions="1-2", flexible=2):
    """Moves a broker's replicas between its log directories.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    """

    class Dir(Struct):
        class Topic(Struct):
            name: str = string("Name of the topic.")
            partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions to move.")

        path: str = string("Absolute path of the target directory on the broker.")
        topics: list[Topic] = array(Topic, "Replicas to move there, by topic.")

    dirs: list[Dir] = array(Dir, "Target directories with the replicas to move there.")


class AlterReplicaLogDirsResponse(Response, key=34, versions="1-2", flexible=2):
    """Says for each replica whether its move has been taken up; it goes on afterwards.

    - v2: flexible
    """

    class Result(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")

        topic_name: str = string("Name of the topic being moved.")
        partitions: list[Partition] = array(Partition, "Outcomes of the topic's partitions.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "Outcomes, by topic.")
