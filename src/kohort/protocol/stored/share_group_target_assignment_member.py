"""Records of type 13 in `__consumer_offsets`: share group target assignment member."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string, uuid_


class ShareGroupTargetAssignmentMemberKey(Data, key=13, versions="0"):
    """Key: what one member of a share group shall read."""

    group_id: str = string("Id of the share group.")
    member_id: str = string("Member of the group that this record is about.")


class ShareGroupTargetAssignmentMemberValue(Data, key=13, versions="0", flexible=0):
    """Value: partitions that the assignor chose for a share group member."""

    class TopicPartition(Struct):
        """Partitions of one topic that the member shall get."""

        topic_id: UUID = uuid_("The topic's id.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions within this topic.")

    topic_partitions: list[TopicPartition] = array(
        TopicPartition, "Partitions the assignor chose for the member, by topic."
    )
