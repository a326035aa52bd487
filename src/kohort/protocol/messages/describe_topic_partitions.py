"""DescribeTopicPartitions: API 75."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string, struct, uuid_


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible=0):
    """Asks for topics and their partitions page by page, with replicas eligible to lead."""

    class Topic(Struct):
        name: str = string("Name of the topic to describe.")

    class Cursor(Struct):
        """The place at which the page starts."""

        topic_name: str = string("Topic at which the page starts, in order of name.")
        partition_index: int = int32("Partition of that topic at which the page starts.")

    topics: list[Topic] = array(Topic, "Topics to describe; empty = all topics.")
    response_partition_limit: int = int32(
        "Most partitions to return in one page; the broker may lower it.", default=2000
    )
    cursor: Cursor | None = struct(
        Cursor, "Where to go on, as the last page said; null = from the start.", nullable=True
    )


class DescribeTopicPartitionsResponse(Response, key=75, versions="0", flexible=0):
    """One page of topics with their partitions, leaders and replicas, and where the next begins."""

    class Topic(Struct):
        """One topic, or why it can't be described."""

        class Partition(Struct):
            error_code: int = int16("0, or why this partition failed.")
            partition_index: int = int32("The partition's number within its topic.")
            leader_id: int = int32("Broker that leads the partition; -1 = no leader.")
            leader_epoch: int = int32("Epoch of that leadership; -1 = unknown.", default=-1, ignorable=True)
            replica_nodes: tuple[int, ...] = array(int32, "Brokers that hold a replica, the preferred leader first.")
            isr_nodes: tuple[int, ...] = array(int32, "Brokers whose replica is in sync.")
            eligible_leader_replicas: tuple[int, ...] | None = array(
                int32, "Brokers out of the ISR that may lead without data loss; null = not known.", nullable=True
            )
            last_known_elr: tuple[int, ...] | None = array(
                int32, "Last leader or eligible leaders known before all were lost; null = not known.", nullable=True
            )
            offline_replicas: tuple[int, ...] = array(int32, "Brokers whose replica is offline.", ignorable=True)

        error_code: int = int16("0, or why this topic failed.")
        name: str | None = string(
            "Name of the topic described; null if the broker can't tell.", nullable=True, default=""
        )
        topic_id: UUID = uuid_("The topic's id.", ignorable=True)
        is_internal: bool = boolean("True for Kafka's own topics, such as __consumer_offsets.", ignorable=True)
        partitions: list[Partition] = array(Partition, "The topic's partitions that fit on this page.")
        topic_authorized_operations: int = int32(
            "One bit per operation the caller may do to the topic; -2147483648 = unset.", default=-2147483648
        )

    class NextCursor(Struct):
        """The place to send as Cursor for the next page."""

        topic_name: str = string("Topic at which the next page starts.")
        partition_index: int = int32("Partition of that topic at which the next page starts.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    topics: list[Topic] = array(Topic, "The topics on this page.")
    next_cursor: NextCursor | None = struct(
        NextCursor, "Where the next page starts; null = this was the last.", nullable=True
    )
