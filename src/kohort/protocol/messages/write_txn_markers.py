"""WriteTxnMarkers: API 27."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Request, key=27, versions="1-2", flexible=1):
    """A transaction coordinator has leaders append commit or abort markers.

    - v1: flexible
    - v2: TransactionVersion (KIP-1228)
    """

    class Marker(Struct):
        class Topic(Struct):
            name: str = string("Name of the topic to mark.")
            partition_indexes: tuple[int, ...] = array(int32, "Numbers of the topic's partitions to mark.")

        producer_id: int = int64("Producer id whose transaction ends.")
        producer_epoch: int = int16("Producer epoch that the marker carries.")
        transaction_result: bool = boolean("Which marker to append: true = commit, false = abort.")
        topics: list[Topic] = array(Topic, "Partitions that get this marker, by topic.")
        coordinator_epoch: int = int32("Leader epoch of the coordinator's state partition; fences old coordinators.")
        transaction_version: int = int8(
            "Rules to check epochs by: 0 or 1 = before epoch bumps, 2 = transactions V2.", since=2, ignorable=True
        )

    markers: list[Marker] = array(Marker, "Ended transactions whose markers are due on this broker.")


class WriteTxnMarkersResponse(Response, key=27, versions="1-2", flexible=1):
    """Says for each partition whether the marker was appended.

    - v1: flexible
    """

    class Marker(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = int32("The partition's number within its topic.")
                error_code: int = int16("0, or why this partition failed.")

            name: str = string("Name of the topic.")
            partitions: list[Partition] = array(Partition, "Outcomes of the topic's partitions.")

        producer_id: int = int64("Producer id that the marker was for.")
        topics: list[Topic] = array(Topic, "Outcomes of this marker, by topic.")

    markers: list[Marker] = array(Marker, "Outcomes, one entry per marker of the request.")
