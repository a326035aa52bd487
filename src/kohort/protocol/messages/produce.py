"""Produce: API 0."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Records, Struct, array, int16, int32, int64, records_, string, struct, uuid_


class ProduceRequest(Request, key=0, versions="3-13", flexible=9):
    """A producer appends record batches to partitions led by the broker it talks to.

    - v4: no change on the wire: the client has to know KAFKA_STORAGE_ERROR
    - v5: the response has LogStartOffset
    - v6: no change on the wire: when over quota, the broker answers first and throttles after
    - v7: no change on the wire: batches may be compressed with zstd
    - v8: the response lists the rejected records and a message
    - v9: flexible
    - v10: the response may name the new leader and its address
    - v11: no change on the wire: TRANSACTION_ABORTABLE may come back
    - v12: no change on the wire: transactional writes add the partition to the transaction by themselves
    - v13: topics by id instead of name
    """

    class TopicData(Struct):
        class PartitionData(Struct):
            index: int = int32("The partition's number within its topic.")
            records: Records | None = records_(
                "The record batch to append (exactly one with magic 2).", nullable=True, default=b""
            )

        name: str = string("Name of the topic to append to.", until=12, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=13, ignorable=True)
        partition_data: list[PartitionData] = array(PartitionData, "The batches to append, by partition.")

    transactional_id: str | None = string("The producer's transactional.id; null outside transactions.", nullable=True)
    acks: int = int16("Wait for: 0 = none (and no response), 1 = the leader, -1 = all in-sync replicas.")
    timeout_ms: int = int32("How long the leader may wait for the in-sync replicas, in ms.")
    topic_data: list[TopicData] = array(TopicData, "The batches to append, by topic.")


class ProduceResponse(Response, key=0, versions="3-13", flexible=9):
    """Where each partition's batch went in the log, or why it was refused.

    - v4: no change on the wire: KAFKA_STORAGE_ERROR may come back
    - v5: LogStartOffset
    - v6: no change on the wire: when over quota, the broker answers first and throttles after
    - v8: RecordErrors and ErrorMessage
    - v9: flexible
    - v10: tagged CurrentLeader and NodeEndpoints
    - v11: no change on the wire: TRANSACTION_ABORTABLE may come back
    - v13: topics by id instead of name; UNKNOWN_TOPIC_ID may come back
    """

    class TopicResponse(Struct):
        class PartitionResponse(Struct):
            class RecordError(Struct):
                """One record that was refused."""

                batch_index: int = int32("Position of the bad record in its batch, from 0.")
                batch_index_error_message: str | None = string(
                    "What is wrong with this record, for people; null if nothing is said.", nullable=True
                )

            class CurrentLeader(Struct):
                """The leader to turn to, and its epoch."""

                leader_id: int = int32(
                    "Node id of the partition's leader; -1 if the broker doesn't know it.", default=-1
                )
                leader_epoch: int = int32("Newest leader epoch the broker knows; -1 if it knows none.", default=-1)

            index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            base_offset: int = int64("Offset given to the first record of the batch; -1 on an error.")
            log_append_time_ms: int = int64(
                "Broker's clock at the append (ms since 1970) under LogAppendTime, else -1.", default=-1, ignorable=True
            )
            log_start_offset: int = int64(
                "First offset still in the log; -1 if not known.", since=5, default=-1, ignorable=True
            )
            record_errors: list[RecordError] = array(
                RecordError, "The records that made the broker refuse the batch.", since=8, ignorable=True
            )
            error_message: str | None = string(
                "What was wrong with the batch, for people; null without an error.",
                since=8,
                nullable=True,
                ignorable=True,
            )
            current_leader: CurrentLeader | None = struct(
                CurrentLeader, "Where to send next time, when this broker isn't the leader.", since=10, tag=0
            )

        name: str = string("Name of the topic appended to.", until=12, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=13, ignorable=True)
        partition_responses: list[PartitionResponse] = array(PartitionResponse, "The outcomes, by partition.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Node id of the broker, as in LeaderId.")
        host: str = string("Host to connect to.")
        port: int = int32("TCP port to connect to.")
        rack: str | None = string("Rack the node is in; null if none is configured.", nullable=True)

    responses: list[TopicResponse] = array(TopicResponse, "The outcomes, by topic.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(
        NodeEndpoint, "Addresses of the brokers that some CurrentLeader names.", since=10, tag=0
    )
