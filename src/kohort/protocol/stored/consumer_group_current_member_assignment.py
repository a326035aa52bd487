"""Records of type 8 in `__consumer_offsets`: consumer group current member assignment."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int32, string, uuid_


class TopicPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the partitions within this topic.")
    assignment_epochs: tuple[int, ...] | None = array(
        int32,
        "Member epoch in which each partition came, to fence commits; empty before Kafka 4.3.",
        nullable=True,
        default=(),
        tag=0,
    )


class ConsumerGroupCurrentMemberAssignmentKey(Data, key=8, versions="0"):
    """Key: what one member of a consumer group holds at present."""

    group_id: str = string("Id of the consumer group.")
    member_id: str = string("Member of the group that this record is about.")


class ConsumerGroupCurrentMemberAssignmentValue(Data, key=8, versions="0", flexible=0):
    """Value: a consumer group member's epoch, its partitions and how far it has got in the rebalance."""

    member_epoch: int = int32("Member epoch that the next heartbeat must carry.")
    previous_member_epoch: int = int32("Member epoch before the last bump, accepted in case its reply got lost.")
    state: int = int8("0 = stable, 1 = has partitions to revoke, 2 = waits for others to release some.")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "Partitions that the member may consume now.")
    partitions_pending_revocation: list[TopicPartitions] = array(
        TopicPartitions, "Partitions that the member was told to give up and has not yet released."
    )
