"""OffsetFetch: API 9."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string, uuid_


class OffsetFetchRequest(Request, key=9, versions="1-10", flexible=6):
    """Asks a group's coordinator for the offsets the group has committed.

    - v2: Topics may be null, for all; the response has a group-level error
    - v3: the response has a throttle time
    - v4: no change on the wire: when over quota, the broker answers first and throttles after
    - v5: the response has the leader epoch of the offset
    - v6: flexible
    - v7: RequireStable
    - v8: several groups at once: Groups replaces GroupId and Topics
    - v9: MemberId and MemberEpoch, checked for consumer groups
    - v10: topics by id instead of name
    """

    class Topic(Struct):
        name: str = string("Name of the topic committed for.")
        partition_indexes: tuple[int, ...] = array(int32, "Numbers of the partitions whose offsets are wanted.")

    class Group(Struct):
        class Topic(Struct):
            name: str = string("Name of the topic committed for.", until=9, ignorable=True)
            topic_id: UUID = uuid_("The topic's id.", since=10, ignorable=True)
            partition_indexes: tuple[int, ...] = array(int32, "Numbers of the partitions whose offsets are wanted.")

        group_id: str = string("The group whose offsets are wanted.")
        member_id: str | None = string(
            "Member that asks, if the group uses the consumer protocol; else null.",
            since=9,
            nullable=True,
            ignorable=True,
        )
        member_epoch: int = int32(
            "The member epoch of the one that asks; -1 outside the consumer protocol.",
            since=9,
            default=-1,
            ignorable=True,
        )
        topics: list[Topic] | None = array(
            Topic, "Where offsets are wanted; null for everywhere.", nullable=True, default=[]
        )

    group_id: str = string("The group whose offsets are wanted.", until=7)
    topics: list[Topic] | None = array(
        Topic, "Where offsets are wanted; null for everywhere.", until=7, nullable_since=2, default=[]
    )
    groups: list[Group] = array(Group, "The groups whose offsets are wanted.", since=8)
    require_stable: bool = boolean(
        "Fail partitions with commits in an open transaction, so the client retries.", since=7
    )


class OffsetFetchResponse(Response, key=9, versions="1-10", flexible=6):
    """The offsets that groups have committed, by topic and partition.

    - v2: top-level ErrorCode
    - v3: ThrottleTimeMs
    - v4: no change on the wire: when over quota, the broker answers first and throttles after
    - v5: CommittedLeaderEpoch
    - v6: flexible
    - v7: no change on the wire: UNSTABLE_OFFSET_COMMIT may come back
    - v8: Groups replaces Topics and ErrorCode
    - v9: no change on the wire: STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID may come back
    - v10: topics by id instead of name; UNKNOWN_TOPIC_ID may come back
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            committed_offset: int = int64("Offset to go on from; -1 if the group committed none.")
            committed_leader_epoch: int = int32(
                "Leader epoch of the last record consumed; -1 if not known.", since=5, default=-1, ignorable=True
            )
            metadata: str | None = string("Free text the client stored with the commit.", nullable=True, default="")
            error_code: int = int16("0, or why this partition failed.")

        name: str = string("Name of the topic committed for.")
        partitions: list[Partition] = array(Partition, "The committed offsets, by partition.")

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = int32("The partition's number within its topic.")
                committed_offset: int = int64("Offset to go on from; -1 if the group committed none.")
                committed_leader_epoch: int = int32(
                    "Leader epoch of the last record consumed; -1 if not known.", default=-1, ignorable=True
                )
                metadata: str | None = string("Free text the client stored with the commit.", nullable=True, default="")
                error_code: int = int16("0, or why this partition failed.")

            name: str = string("Name of the topic committed for.", until=9, ignorable=True)
            topic_id: UUID = uuid_("The topic's id.", since=10, ignorable=True)
            partitions: list[Partition] = array(Partition, "The committed offsets, by partition.")

        group_id: str = string("The group that committed.")
        topics: list[Topic] = array(Topic, "The group's committed offsets, by topic.")
        error_code: int = int16("0, or why this group failed.")

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=3, ignorable=True
    )
    topics: list[Topic] = array(Topic, "The committed offsets, by topic.", until=7)
    error_code: int = int16("0, or the error that failed the whole request.", since=2, until=7, ignorable=True)
    groups: list[Group] = array(Group, "The committed offsets, by group.", since=8)
