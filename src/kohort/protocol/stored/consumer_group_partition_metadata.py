"""Records of type 4 in `__consumer_offsets`: consumer group partition metadata."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string, uuid_


class ConsumerGroupPartitionMetadataKey(Data, key=4, versions="0"):
    """Key: topics a consumer group subscribes to; only brokers before 4.1 write it."""

    group_id: str = string("Id of the consumer group.")


class ConsumerGroupPartitionMetadataValue(Data, key=4, versions="0", flexible=0):
    """Value: subscribed topics as last seen; since 4.1 the group's MetadataHash stands in for it."""

    class Topic(Struct):
        class PartitionMetadata(Struct):
            """Racks of one partition."""

            partition: int = int32("The partition's number within its topic.")
            racks: tuple[str, ...] = array(string, "Racks that hold a replica of it.")

        topic_id: UUID = uuid_("The topic's id.")
        topic_name: str = string("Name of the topic.")
        num_partitions: int = int32("How many partitions the topic had.")
        partition_metadata: list[PartitionMetadata] = array(
            PartitionMetadata, "Racks of each partition; empty when racks are unknown. Unused after 4.0."
        )

    topics: list[Topic] = array(Topic, "All subscribed topics, as the coordinator saw them.")
