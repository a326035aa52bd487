"""Fetch: API 1."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Records, Struct, array, int8, int16, int32, int64, records_, string, struct, uuid_


class FetchRequest(Request, key=1, versions="4-18", flexible=12):
    """Consumers and follower replicas read record batches from given offsets on.

    - v5: LogStartOffset of a follower
    - v6: no change on the wire: KAFKA_STORAGE_ERROR may come back
    - v7: fetch sessions: SessionId, SessionEpoch, ForgottenTopicsData
    - v8: no change on the wire: when over quota, the broker answers first and throttles after
    - v9: CurrentLeaderEpoch, to fence stale clients and brokers
    - v10: no change on the wire: batches may be compressed with zstd
    - v11: RackId, for reading from a near replica
    - v12: flexible; LastFetchedEpoch, tagged ClusterId
    - v13: topics by id instead of name
    - v14: no change on the wire: OFFSET_MOVED_TO_TIERED_STORAGE may come back
    - v15: tagged ReplicaState replaces ReplicaId
    - v16: the response may carry NodeEndpoints
    - v17: tagged ReplicaDirectoryId, for KRaft voters
    - v18: tagged HighWatermark
    """

    class ReplicaState(Struct):
        replica_id: int = int32(
            "Node id of the following broker; -1 for a consumer, -2 for a debugging one.", default=-1
        )
        replica_epoch: int = int64("Broker epoch of the following broker; -1 if it has none.", default=-1)

    class Topic(Struct):
        class Partition(Struct):
            partition: int = int32("The partition's number within its topic.")
            current_leader_epoch: int = int32(
                "Leader epoch the sender goes by; -1 turns the check off.", since=9, default=-1, ignorable=True
            )
            fetch_offset: int = int64("Offset to read from.")
            last_fetched_epoch: int = int32(
                "Leader epoch of the record before FetchOffset, to find divergence; -1 if none.", since=12, default=-1
            )
            log_start_offset: int = int64(
                "First offset the follower still has; -1 from consumers.", since=5, default=-1, ignorable=True
            )
            partition_max_bytes: int = int32(
                "Limit for this partition in bytes; the answer's first batch may exceed it."
            )
            replica_directory_id: UUID = uuid_(
                "Id of the log directory with a KRaft replica's log; zero from anyone else.",
                since=17,
                ignorable=True,
                tag=0,
            )
            high_watermark: int = int64(
                "Follower's high watermark; -1 = it has none, int64 max = it doesn't send it.",
                since=18,
                default=2**63 - 1,
                ignorable=True,
                tag=1,
            )

        topic: str = string("Name of the topic that is read.", until=12, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=13, ignorable=True)
        partitions: list[Partition] = array(Partition, "The partitions to read, served in this order.")

    class ForgottenTopicsData(Struct):
        """One topic's partitions that leave the session."""

        topic: str = string("Name of the topic to drop partitions of.", until=12, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=13, ignorable=True)
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions to drop.")

    cluster_id: str | None = string(
        "Cluster the sender believes it is in, checked by KRaft; null if it doesn't know.",
        since=12,
        nullable=True,
        ignorable=True,
        tag=0,
    )
    replica_id: int = int32(
        "Node id of the following broker; -1 for a consumer, -2 for a debugging one.", until=14, default=-1
    )
    replica_state: ReplicaState | None = struct(ReplicaState, "Which replica asks, in newer versions.", since=15, tag=1)
    max_wait_ms: int = int32("How long the broker may wait for MinBytes to gather, in ms.")
    min_bytes: int = int32("Answer once so many bytes are there, or after MaxWaitMs.")
    max_bytes: int = int32(
        "Limit on the whole answer in bytes; the first batch comes even if larger.", default=2**31 - 1, ignorable=True
    )
    isolation_level: int = int8("0 = read all records, 1 = no further than the last stable offset.", ignorable=True)
    session_id: int = int32("Fetch session to go on with; 0 for none yet.", since=7, ignorable=True)
    session_epoch: int = int32(
        "Counts a session's requests; 0 opens one, -1 fetches without (and closes it).",
        since=7,
        default=-1,
        ignorable=True,
    )
    topics: list[Topic] = array(Topic, "What to read; within a session, only what is new or changed.")
    forgotten_topics_data: list[ForgottenTopicsData] = array(
        ForgottenTopicsData, "What to drop from the fetch session.", since=7
    )
    rack_id: str = string(
        "Rack the consumer is in (client.rack), to choose a near replica; may be empty.", since=11, ignorable=True
    )


class FetchResponse(Response, key=1, versions="4-18", flexible=12):
    """Record batches of the partitions asked for, with the offsets that bound what can be read.

    - v5: LogStartOffset
    - v6: no change on the wire: KAFKA_STORAGE_ERROR may come back
    - v7: fetch sessions: top-level ErrorCode and SessionId
    - v8: no change on the wire: when over quota, the broker answers first and throttles after
    - v10: no change on the wire: batches may be compressed with zstd
    - v11: PreferredReadReplica
    - v12: flexible; tagged DivergingEpoch, CurrentLeader and SnapshotId
    - v13: topics by id instead of name
    - v14: no change on the wire: OFFSET_MOVED_TO_TIERED_STORAGE may come back
    - v16: tagged NodeEndpoints
    """

    class TopicResponse(Struct):
        class Partition(Struct):
            class DivergingEpoch(Struct):
                """Point up to which a follower's log may be right."""

                epoch: int = int32("Newest leader epoch the logs may share; -1 if they agree.", default=-1)
                end_offset: int = int64("Where that epoch ends in the leader's log; -1 if the logs agree.", default=-1)

            class CurrentLeader(Struct):
                """The leader to turn to, and its epoch."""

                leader_id: int = int32(
                    "Node id of the partition's leader; -1 if the broker doesn't know it.", default=-1
                )
                leader_epoch: int = int32("Newest leader epoch the broker knows; -1 if it knows none.", default=-1)

            class SnapshotId(Struct):
                """Names a KRaft snapshot by the position where it ends."""

                end_offset: int = int64("Offset after the last record in the snapshot; -1 without one.", default=-1)
                epoch: int = int32("Leader epoch of the snapshot's last record; -1 without one.", default=-1)

            class AbortedTransaction(Struct):
                """One aborted transaction in the range that was read."""

                producer_id: int = int64("Producer whose transaction was aborted.")
                first_offset: int = int64("Offset where the aborted transaction begins.")

            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            high_watermark: int = int64("Offset after the last fully replicated record; -1 if not known.")
            last_stable_offset: int = int64(
                "Below it every transaction has been decided; -1 if not known.", default=-1, ignorable=True
            )
            log_start_offset: int = int64(
                "First offset still in the log; -1 if not known.", since=5, default=-1, ignorable=True
            )
            diverging_epoch: DivergingEpoch | None = struct(
                DivergingEpoch, "Set if the logs differ: the follower should truncate to here.", since=12, tag=0
            )
            current_leader: CurrentLeader | None = struct(
                CurrentLeader, "Who leads now, when this broker doesn't or the epoch is stale.", since=12, tag=1
            )
            snapshot_id: SnapshotId | None = struct(
                SnapshotId,
                "Snapshot to load first, when the log no longer reaches back to the offset.",
                since=12,
                tag=2,
            )
            aborted_transactions: list[AbortedTransaction] | None = array(
                AbortedTransaction,
                "Transactions to skip in Records; null when reading uncommitted.",
                nullable=True,
                default=[],
                ignorable=True,
            )
            preferred_read_replica: int = int32(
                "Node id of a replica better read from; -1 to stay with this one.", since=11, default=-1
            )
            records: Records | None = records_(
                "Record batches; the first may begin early, the last may be cut off.", nullable=True, default=b""
            )

        topic: str = string("Name of the topic read.", until=12, ignorable=True)
        topic_id: UUID = uuid_("The topic's id.", since=13, ignorable=True)
        partitions: list[Partition] = array(Partition, "The data, by partition.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Node id of the broker, as in LeaderId.")
        host: str = string("Host to connect to.")
        port: int = int32("TCP port to connect to.")
        rack: str | None = string("Rack the node is in; null if none is configured.", nullable=True)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    error_code: int = int16("0, or the error that failed the whole request.", since=7, ignorable=True)
    session_id: int = int32("Fetch session to use from now on; 0 if there is none.", since=7)
    responses: list[TopicResponse] = array(
        TopicResponse, "The data, by topic; within a session, only partitions with news."
    )
    node_endpoints: list[NodeEndpoint] = array(
        NodeEndpoint, "Addresses of the brokers that some CurrentLeader names.", since=16, tag=0
    )
