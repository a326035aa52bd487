"""Records of type 7 in `__consumer_offsets`: consumer group target assignment member."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string, uuid_


class ConsumerGroupTargetAssignmentMemberKey(Data, key=7, versions="0"):
    """Key: what one member of a consumer group shall hold in the end."""

    group_id: str = string("Id of the consumer group.")
    member_id: str = string("Member of the group that this record is about.")


class ConsumerGroupTargetAssignmentMemberValue(Data, key=7, versions="0", flexible=0):
    """Value: partitions that a consumer group member holds once the rebalance is through."""

    class TopicPartition(Struct):
        """Partitions of one topic that the member shall get."""

        topic_id: UUID = uuid_("The topic's id.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions within this topic.")

    topic_partitions: list[TopicPartition] = array(
        TopicPartition, "Partitions the assignor chose for the member, by topic."
    )
