"""ShareFetch: API 78."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import (
    Records,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    records_,
    string,
    struct,
    uuid_,
)


class ShareFetchRequest(Request, key=78, versions="1-2", flexible=1):
    """A share group member acquires records from partition leaders and acknowledges earlier ones.

    - v1: the first stable version: MaxRecords and BatchSize, no PartitionMaxBytes
    - v2: ShareAcquireMode and IsRenewAck; acknowledge type 4 renews a lock
    """

    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatch(Struct):
                """What became of one range of offsets."""

                first_offset: int = int64("Offset of the first record acknowledged.")
                last_offset: int = int64("Offset of the last record acknowledged, itself included.")
                acknowledge_types: tuple[int, ...] = array(
                    int8, "One per offset, or one for all: gap 0, accept 1, release 2, reject 3, renew 4."
                )

            partition_index: int = int32("The partition's number within its topic.")
            acknowledgement_batches: list[AcknowledgementBatch] = array(
                AcknowledgementBatch, "What became of records acquired earlier."
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions in this request.")

    class ForgottenTopicsData(Struct):
        """Partitions of one topic that leave the session."""

        topic_id: UUID = uuid_("The topic's id.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions that leave the session.")

    group_id: str | None = string("The share group the member belongs to.", nullable=True)
    member_id: str | None = string("The member's id in the group.", nullable=True, default="")
    share_session_epoch: int = int32("Counts the session's requests: 0 = open a session, -1 = close it.")
    max_wait_ms: int = int32("How long the broker may wait for MinBytes of records, in ms.")
    min_bytes: int = int32("Answer at once when this many bytes are there; else wait up to MaxWaitMs.")
    max_bytes: int = int32(
        "About the most bytes to return; one first batch that is larger still comes whole.", default=2**31 - 1
    )
    max_records: int = int32("About the most records to acquire; whole batches may go beyond it.")
    batch_size: int = int32("How many records each acquired batch should hold at best.")
    share_acquire_mode: int = int8(
        "How MaxRecords acts: 0 = whole batches may exceed it, 1 = strict limit.", since=2, ignorable=True
    )
    is_renew_ack: bool = boolean("True if some acknowledgement here renews an acquisition lock (type 4).", since=2)
    topics: list[Topic] = array(Topic, "Partitions to fetch from, or to acknowledge for.")
    forgotten_topics_data: list[ForgottenTopicsData] = array(
        ForgottenTopicsData, "Partitions that leave the share session."
    )


class ShareFetchResponse(Response, key=78, versions="1-2", flexible=1):
    """Records the member has acquired, and how its acknowledgements fared.

    - v1: the first stable version: AcquisitionLockTimeoutMs
    """

    class TopicResponse(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                """The leader a partition has now."""

                leader_id: int = int32("Broker that leads the partition; -1 = not known.")
                leader_epoch: int = int32("Newest leader epoch the broker knows of.")

            class AcquiredRecord(Struct):
                """One range of locked offsets."""

                first_offset: int = int64("Offset of the range's first record.")
                last_offset: int = int64("Offset of the range's last record, itself included.")
                delivery_count: int = int16("How often these records were handed out, this time included.")

            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why fetching from this partition failed.")
            error_message: str | None = string("Why fetching failed, for people; null without an error.", nullable=True)
            acknowledge_error_code: int = int16("0, or why this partition's acknowledgements failed.")
            acknowledge_error_message: str | None = string(
                "Why acknowledging failed, for people; null without an error.", nullable=True
            )
            current_leader: CurrentLeader = struct(
                CurrentLeader, "Whom to ask instead, if the receiver doesn't lead the partition."
            )
            records: Records = records_("Record batches; may hold records outside AcquiredRecords, to be skipped.")
            acquired_records: list[AcquiredRecord] = array(
                AcquiredRecord, "Ranges of offsets that are now locked for the member."
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "Results for the topic's partitions.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Broker id that a CurrentLeader refers to.")
        host: str = string("Host name or address at which to reach the broker.")
        port: int = int32("TCP port at which to reach the broker.")
        rack: str | None = string("Rack the broker stands in; null if none is configured.", nullable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    acquisition_lock_timeout_ms: int = int32("How long the acquired records stay locked for the member, in ms.")
    responses: list[TopicResponse] = array(TopicResponse, "Results, by topic.")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "Addresses of the brokers named as CurrentLeader.")
