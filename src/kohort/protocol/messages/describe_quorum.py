"""DescribeQuorum: API 55."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, uint16, uuid_


class ReplicaState(Struct):
    """How far one voter or observer has got."""

    replica_id: int = int32("Node id of the voter or observer.")
    replica_directory_id: UUID = uuid_("Log directory it keeps the log in; zero if unknown.", since=2)
    log_end_offset: int = int64("Offset after its last record, as the leader knows it; -1 if unknown.")
    last_fetch_timestamp: int = int64(
        "Leader's clock at its last fetch, in ms since 1970; -1 if unknown.", since=1, default=-1, ignorable=True
    )
    last_caught_up_timestamp: int = int64(
        "When it last had all of the leader's log, in ms since 1970; -1 if unknown.",
        since=1,
        default=-1,
        ignorable=True,
    )


class DescribeQuorumRequest(Request, key=55, versions="0-2", flexible=0):
    """Asks for the state of the metadata quorum: leader, voters, observers and their lag.

    - v1: same bytes; the response has fetch and catch-up times
    - v2: same bytes; the response has error messages, directory ids and the nodes' listeners
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic asked about; number 0 in practice.")

    topics: list[Topic] = array(Topic, "Raft-managed topics asked about; one entry in practice.")


class DescribeQuorumResponse(Response, key=55, versions="0-2", flexible=0):
    """The leader's view of the metadata quorum: how far each voter and observer has read.

    - v1: LastFetchTimestamp and LastCaughtUpTimestamp of each replica
    - v2: ErrorMessage (twice), Nodes, ReplicaDirectoryId
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            error_message: str | None = string(
                "Why it failed, for people; null without an error.", since=2, nullable=True, default="", ignorable=True
            )
            leader_id: int = int32("Leader the responder knows of; -1 if it knows none.")
            leader_epoch: int = int32("Highest leader epoch the responder has seen.")
            high_watermark: int = int64("Offset below which a majority of voters has every record; -1 if unknown.")
            current_voters: list[ReplicaState] = array(ReplicaState, "Replicas with a vote, the leader included.")
            observers: list[ReplicaState] = array(ReplicaState, "Replicas that fetch the log but have no vote.")

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Quorum state of each partition asked about.")

    class Node(Struct):
        """One node of the quorum."""

        class Listener(Struct):
            name: str = string("Name of the listener.")
            host: str = string("Host name or address of that listener.")
            port: int = uint16("TCP port of that listener.")

        node_id: int = int32("Node id of the voter.")
        listeners: list[Listener] = array(Listener, "Controller listeners of the node.")

    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string(
        "What went wrong, for people; null without an error.", since=2, nullable=True, default="", ignorable=True
    )
    topics: list[Topic] = array(Topic, "Quorum state by topic.")
    nodes: list[Node] = array(Node, "Addresses of the voters named above.", since=2)
