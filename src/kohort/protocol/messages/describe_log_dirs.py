"""DescribeLogDirs: API 35."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string


class DescribeLogDirsRequest(Request, key=35, versions="1-5", flexible=2):
    """Asks a broker for its log directories and the replicas that they hold.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    - v3: same layout; the response has a top-level error
    - v4: same layout; the response has volume sizes
    - v5: same layout; the response marks cordoned directories
    """

    class Topic(Struct):
        topic: str = string("Name of the topic to report on.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions to report on.")

    topics: list[Topic] | None = array(
        Topic, "Topics to report replicas of; null = all topics.", nullable=True, default=[]
    )


class DescribeLogDirsResponse(Response, key=35, versions="1-5", flexible=2):
    """A broker's log directories, their space, and the size and lag of each replica.

    - v2: flexible
    - v3: the top-level ErrorCode
    - v4: TotalBytes and UsableBytes
    - v5: IsCordoned
    """

    class Result(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = int32("The partition's number within its topic.")
                partition_size: int = int64("Bytes that the log's segments take on this disk.")
                offset_lag: int = int64(
                    "Offsets behind the high watermark, or behind the log it replaces; -1 = unknown."
                )
                is_future_key: bool = boolean("True = a copy still being moved here, to take over from the old log.")

            name: str = string("Name of the topic.")
            partitions: list[Partition] = array(Partition, "Logs of the topic's partitions.")

        error_code: int = int16("0, or why this directory cannot be read, as when it is offline.")
        log_dir: str = string("Absolute path of the directory on the broker.")
        topics: list[Topic] = array(Topic, "Replicas kept in the directory, by topic.")
        total_bytes: int = int64(
            "Size of the volume below the directory, in bytes; -1 = unknown.", since=4, default=-1, ignorable=True
        )
        usable_bytes: int = int64(
            "Bytes of that volume that can still be used; -1 = unknown.", since=4, default=-1, ignorable=True
        )
        is_cordoned: bool = boolean("Whether the directory takes no new replicas.", since=5, ignorable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.", since=3, ignorable=True)
    results: list[Result] = array(Result, "Log directories that the broker is configured with.")
