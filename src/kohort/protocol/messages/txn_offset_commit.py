"""TxnOffsetCommit: API 28."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uuid_


class TxnOffsetCommitRequest(Request, key=28, versions="0-6", flexible=3):
    """Commits a group's offsets as part of a transaction; they count once it commits.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: CommittedLeaderEpoch
    - v3: flexible; GenerationId, MemberId and GroupInstanceId fence stale members
    - v4: same layout; may answer TRANSACTION_ABORTABLE (KIP-890)
    - v5: same layout; transactions V2: the commit also does what AddOffsetsToTxn did
    - v6 (Kafka 4.4): TopicId in place of Name; may answer GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, UNKNOWN_TOPIC_ID
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            committed_offset: int = int64("Offset the group is to go on reading from.")
            committed_leader_epoch: int = int32(
                "Leader epoch of the record before that offset; -1 = unknown.", since=2, default=-1, ignorable=True
            )
            committed_metadata: str | None = string(
                "Free text of the client, stored with the offset.", nullable=True, default=""
            )

        name: str = string("Name of the topic.", until=5, ignorable=True)
        topic_id: UUID = uuid_("Id of the topic.", since=6, ignorable=True)
        partitions: list[Partition] = array(Partition, "Offsets for the topic's partitions.")

    transactional_id: str = string("The transactional id the producer was configured with.")
    group_id: str = string("Group whose offsets are committed.")
    producer_id: int = int64("Producer id the transactional id has at present.")
    producer_epoch: int = int16("Epoch of that producer id; an older one is fenced.")
    generation_id_or_member_epoch: int = int32(
        "The member's generation or member epoch, for fencing; -1 = no check.", since=3, default=-1
    )
    member_id: str = string("Id of the committing member; empty = no check.", since=3)
    group_instance_id: str | None = string(
        "Instance id of a static member; null for a dynamic one.", since=3, nullable=True
    )
    topics: list[Topic] = array(Topic, "Offsets to commit, by topic.")


class TxnOffsetCommitResponse(Response, key=28, versions="0-6", flexible=3):
    """Says for each partition whether its offset is pending in the transaction.

    - v3: flexible
    - v6 (Kafka 4.4): TopicId in place of Name
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")

        name: str = string("Name of the topic.", until=5, ignorable=True)
        topic_id: UUID = uuid_("Id of the topic.", since=6, ignorable=True)
        partitions: list[Partition] = array(Partition, "Outcomes of the topic's partitions.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    topics: list[Topic] = array(Topic, "Outcomes, by topic.")
