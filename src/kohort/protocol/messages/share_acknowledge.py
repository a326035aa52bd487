"""ShareAcknowledge: API 79."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, int64, string, struct, uuid_


class ShareAcknowledgeRequest(Request, key=79, versions="1-2", flexible=1):
    """A share consumer tells a partition leader what became of records it had acquired, without fetching more.

    - v1: first stable version; 0 was an early-access form that brokers dropped
    - v2: acknowledge type 4 renews a lock: IsRenewAck
    """

    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatch(Struct):
                """A range of offsets and what became of its records."""

                first_offset: int = int64("Where the acknowledged range begins.")
                last_offset: int = int64("Where the acknowledged range ends, inclusive.")
                acknowledge_types: tuple[int, ...] = array(
                    int8, "Each or all: 0 = no record, 1 = done, 2 = redeliver, 3 = unusable, 4 = keep locked."
                )

            partition_index: int = int32("The partition's number within its topic.")
            acknowledgement_batches: list[AcknowledgementBatch] = array(
                AcknowledgementBatch, "Ranges of offsets, each with its outcome."
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "The topic's partitions with acknowledged records.")

    group_id: str | None = string("The share group the consumer belongs to.", nullable=True)
    member_id: str | None = string(
        "The consumer's id in the group; it also names the share session.", nullable=True, default=""
    )
    share_session_epoch: int = int32("Rises by 1 with each request of the session; -1 ends it; 0 is refused here.")
    is_renew_ack: bool = boolean("True if some batch renews acquisition locks (acknowledge type 4).", since=2)
    topics: list[Topic] = array(Topic, "Topics with records being acknowledged.")


class ShareAcknowledgeResponse(Response, key=79, versions="1-2", flexible=1):
    """Tells a share consumer which of its acknowledgements each partition accepted.

    - v1: first stable version; 0 was an early-access form that brokers dropped
    - v2: tells how long locks last: AcquisitionLockTimeoutMs
    """

    class TopicResponse(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                """The partition's leader and its epoch."""

                leader_id: int = int32("Broker that leads the partition; -1 = unknown.")
                leader_epoch: int = int32("Newest leader epoch this broker knows of.")

            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why this partition failed, for people; null without an error.", nullable=True
            )
            current_leader: CurrentLeader = struct(
                CurrentLeader, "Whom to ask instead when this broker does not lead the partition."
            )

        topic_id: UUID = uuid_("The topic's id.")
        partitions: list[Partition] = array(Partition, "Outcome for each of the topic's partitions.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Broker the address belongs to.")
        host: str = string("Host name to connect to.")
        port: int = int32("TCP port to connect to.")
        rack: str | None = string("Rack the broker is in; null = none set.", nullable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    acquisition_lock_timeout_ms: int = int32(
        "How long an acquired record stays locked for its consumer, in ms.", since=2, ignorable=True
    )
    responses: list[TopicResponse] = array(TopicResponse, "Outcome for each topic of the request.")
    node_endpoints: list[NodeEndpoint] = array(
        NodeEndpoint, "Addresses of the leaders named above, so that clients need no metadata."
    )
