"""Records of type 15 in `__consumer_offsets`: share group state partition metadata."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string, uuid_


class TopicPartitionsInfo(Struct):
    """Some partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    topic_name: str = string("Name of the topic.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the partitions within this topic.")


class TopicInfo(Struct):
    """One topic as a whole."""

    topic_id: UUID = uuid_("The topic's id.")
    topic_name: str = string("Name of the topic.")


class ShareGroupStatePartitionMetadataKey(Data, key=15, versions="0"):
    """Key: for which partitions a share group has state at the share coordinator."""

    group_id: str = string("Id of the share group.")


class ShareGroupStatePartitionMetadataValue(Data, key=15, versions="0", flexible=0):
    """Value: partitions whose share state is being set up, is there, or is being deleted."""

    initializing_topics: list[TopicPartitionsInfo] = array(
        TopicPartitionsInfo, "Partitions whose state was asked for at the share coordinator, not yet confirmed."
    )
    initialized_topics: list[TopicPartitionsInfo] = array(
        TopicPartitionsInfo, "Partitions whose state exists, so that they can be assigned."
    )
    deleting_topics: list[TopicInfo] = array(TopicInfo, "Topics whose state is about to go.")
