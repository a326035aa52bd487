"""OffsetCommit: API 8."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class OffsetCommitRequest(Request, key=8, versions="2-10", flexible=8):
    """A consumer or an admin stores how far a group has read in its partitions.

    - v3: same request; the response has a throttle time
    - v4: same request; the broker answers before it throttles
    - v5: RetentionTimeMs is gone; only the broker's setting counts
    - v6: leader epochs, so that truncation can be noticed
    - v7: static members: GroupInstanceId
    - v8: flexible
    - v9: same layout; also for consumer groups with member epochs
    - v10: topic ids in place of names
    """

    class Topic(Struct):
        """One topic that was read."""

        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            committed_offset: int = int64("Next offset to read: one past the last record processed.")
            committed_leader_epoch: int = int32(
                "Epoch of the leader that wrote the last record processed; -1 = unknown.",
                since=6,
                default=-1,
                ignorable=True,
            )
            committed_metadata: str | None = string(
                "The client's own note, handed back by OffsetFetch; null = none.", nullable=True, default=""
            )

        name: str = string("Name of the topic that was read.", until=9, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=10, ignorable=True)
        partitions: list[Partition] = array(Partition, "Offsets to store, by partition.")

    group_id: str = string("Group to store the offsets for.")
    generation_id_or_member_epoch: int = int32(
        "Generation (classic) or member epoch (consumer group); -1 = not a member.", default=-1, ignorable=True
    )
    member_id: str = string("Member that commits; empty when it does so without being one.", ignorable=True)
    group_instance_id: str | None = string("Name of a static member; null = a dynamic member.", since=7, nullable=True)
    retention_time_ms: int = int64(
        "How long to keep the offsets, in ms; -1 = as the broker is configured.", until=4, default=-1, ignorable=True
    )
    topics: list[Topic] = array(Topic, "Offsets to store, by topic.")


class OffsetCommitResponse(Response, key=8, versions="2-10", flexible=8):
    """Tells, for each partition, whether the offset was stored.

    - v3: ThrottleTimeMs
    - v8: flexible
    - v9: same layout; may say STALE_MEMBER_EPOCH or GROUP_ID_NOT_FOUND
    - v10: topic ids in place of names
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")

        name: str = string("Name of the topic, as requested.", until=9, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=10, ignorable=True)
        partitions: list[Partition] = array(Partition, "Outcome for every partition of the topic.")

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=3, ignorable=True
    )
    topics: list[Topic] = array(Topic, "Outcome for every topic of the request.")
