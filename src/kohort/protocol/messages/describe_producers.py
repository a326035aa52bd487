"""DescribeProducers: API 61."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string


class DescribeProducersRequest(Request, key=61, versions="0", flexible=0):
    """Asks partition leaders which idempotent and transactional producers they hold state for."""

    class Topic(Struct):
        name: str = string("Name of the topic asked about.")
        partition_indexes: tuple[int, ...] = array(
            int32, "Numbers of the partitions asked about; the receiver must lead them."
        )

    topics: list[Topic] = array(Topic, "Topics whose partitions are asked about.")


class DescribeProducersResponse(Response, key=61, versions="0", flexible=0):
    """Lists the producers with state in each partition, to find hanging transactions for example."""

    class Topic(Struct):
        class Partition(Struct):
            """Producers of one partition, or why they can't be listed."""

            class ActiveProducer(Struct):
                """What the leader remembers of one producer."""

                producer_id: int = int64("Id the transaction or producer-id service gave the producer.")
                producer_epoch: int = int32("Epoch of the producer id; lower ones are fenced off.")
                last_sequence: int = int32("Sequence number of its newest record here; -1 = none known.", default=-1)
                last_timestamp: int = int64(
                    "Timestamp of its newest write here, in ms since the epoch; -1 = none known.", default=-1
                )
                coordinator_epoch: int = int32(
                    "Epoch of the coordinator that wrote its last transaction marker; -1 = none yet."
                )
                current_txn_start_offset: int = int64(
                    "First offset of its open transaction here; -1 = no open transaction.", default=-1
                )

            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null if there is no more to say.", nullable=True
            )
            active_producers: list[ActiveProducer] = array(
                ActiveProducer, "Producers whose state the leader still remembers."
            )

        name: str = string("Name of the topic that was asked about.")
        partitions: list[Partition] = array(Partition, "Results for the topic's partitions.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    topics: list[Topic] = array(Topic, "Results, by topic.")
