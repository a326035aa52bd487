"""BeginQuorumEpoch: API 53."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, uint16, uuid_


class BeginQuorumEpochRequest(Request, key=53, versions="0-1", flexible=1):
    """A new leader of the metadata quorum tells the voters that its epoch has begun.

    - v1: flexible; voters by directory: VoterId, VoterDirectoryId; LeaderEndpoints
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            voter_directory_id: UUID = uuid_(
                "Log directory of the voter this is meant for; zero if unknown.", since=1, ignorable=True
            )
            leader_id: int = int32("Node id of the new leader, the sender.")
            leader_epoch: int = int32("Epoch in which the sender was elected.")

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic with a new leader.")

    class LeaderEndpoint(Struct):
        name: str = string("Name of the listener.")
        host: str = string("Host name or address of that listener.")
        port: int = uint16("TCP port of that listener.")

    cluster_id: str | None = string("Cluster the sender belongs to; null skips the check.", nullable=True)
    voter_id: int = int32(
        "Node id of the voter this is meant for; -1 skips the check.", since=1, default=-1, ignorable=True
    )
    topics: list[Topic] = array(Topic, "Raft-managed topics with a new leader; one in practice.")
    leader_endpoints: list[LeaderEndpoint] = array(
        LeaderEndpoint, "Where the sending leader can be reached, by listener.", since=1, ignorable=True
    )


class BeginQuorumEpochResponse(Response, key=53, versions="0-1", flexible=1):
    """A voter accepts the new leader of the metadata quorum, or names another.

    - v1: flexible; NodeEndpoints
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why the receiver refused for this partition.")
            leader_id: int = int32("Leader the responder knows of; -1 if it knows none.")
            leader_epoch: int = int32("Highest leader epoch the responder has seen.")

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "One answer per partition.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Node id of the leader.")
        host: str = string("Host name or address the leader listens on.")
        port: int = uint16("TCP port the leader listens on.")

    error_code: int = int16("0, or the error that failed the whole request.")
    topics: list[Topic] = array(Topic, "Answers by topic.")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "Where to reach the leaders named above.", since=1, tag=0)
