"""FetchSnapshot: API 59."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Records, Struct, array, int16, int32, int64, records_, string, struct, uint16, uuid_


class FetchSnapshotRequest(Request, key=59, versions="0-1", flexible=0):
    """A replica fetches part of a metadata snapshot from the leader of the quorum.

    - v1: ReplicaDirectoryId
    """

    class Topic(Struct):
        class Partition(Struct):
            class SnapshotId(Struct):
                """End offset and epoch that name a snapshot."""

                end_offset: int = int64("Offset after the last record the snapshot covers.")
                epoch: int = int32("Leader epoch of the last record the snapshot covers.")

            partition: int = int32("The partition's number within its topic.")
            current_leader_epoch: int = int32("Leader epoch the replica is in; -1 if it knows none.")
            snapshot_id: SnapshotId = struct(SnapshotId, "Which snapshot to read from.")
            position: int = int64("Byte of the snapshot to go on from; 0 is its start.")
            replica_directory_id: UUID = uuid_(
                "Log directory of the replica that fetches; zero if unknown.", since=1, ignorable=True, tag=0
            )

        name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic whose snapshots are wanted.")

    cluster_id: str | None = string("Cluster the sender belongs to; null skips the check.", nullable=True, tag=0)
    replica_id: int = int32("Node id of the replica that fetches; -1 if it has none.", default=-1)
    max_bytes: int = int32("Most bytes of snapshot data to send back.", default=2**31 - 1)
    topics: list[Topic] = array(Topic, "Snapshots to fetch, by topic; one in practice.")


class FetchSnapshotResponse(Response, key=59, versions="0-1", flexible=0):
    """A piece of a metadata snapshot, or where to find the leader that has it.

    - v1: NodeEndpoints
    """

    class Topic(Struct):
        class Partition(Struct):
            class SnapshotId(Struct):
                """End offset and epoch that name a snapshot."""

                end_offset: int = int64("Offset after the last record the snapshot covers.")
                epoch: int = int32("Leader epoch of the last record the snapshot covers.")

            class CurrentLeader(Struct):
                """A leader and its epoch."""

                leader_id: int = int32("Leader the responder knows of; -1 if it knows none.")
                leader_epoch: int = int32("Highest leader epoch the responder has seen.")

            index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            snapshot_id: SnapshotId = struct(SnapshotId, "Which snapshot the piece is from.")
            current_leader: CurrentLeader | None = struct(
                CurrentLeader, "Leader to turn to, as the responder knows it.", tag=0
            )
            size: int = int64("Length of the whole snapshot, in bytes.")
            position: int = int64("Byte of the snapshot at which this piece starts.")
            unaligned_records: Records = records_("Bytes of the piece: record batches, cut off anywhere.")

        name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "One piece per partition of the topic.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Node id of the leader.")
        host: str = string("Host name or address the leader listens on.")
        port: int = uint16("TCP port the leader listens on.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    error_code: int = int16("0, or the error that failed the whole request.")
    topics: list[Topic] = array(Topic, "Pieces of snapshots, by topic.")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "Where to reach the leaders named above.", since=1, tag=0)
