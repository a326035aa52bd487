"""Records of type 14 in `__consumer_offsets`: share group current member assignment."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int32, string, uuid_


class TopicPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the partitions within this topic.")


class ShareGroupCurrentMemberAssignmentKey(Data, key=14, versions="0"):
    """Key: what one member of a share group holds at present."""

    group_id: str = string("Id of the share group.")
    member_id: str = string("Member of the group that this record is about.")


class ShareGroupCurrentMemberAssignmentValue(Data, key=14, versions="0", flexible=0):
    """Value: a share group member's epoch and the partitions that it reads."""

    member_epoch: int = int32("Member epoch that the next heartbeat must carry.")
    previous_member_epoch: int = int32("Member epoch before the last bump, accepted in case its reply got lost.")
    state: int = int8("0 = stable; share groups have nothing to revoke, so no other is expected.")
    assigned_partitions: list[TopicPartitions] = array(
        TopicPartitions, "Partitions that the member may fetch from, perhaps along with others."
    )
