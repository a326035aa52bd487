"""EndQuorumEpoch: API 54."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, uint16, uuid_


class EndQuorumEpochRequest(Request, key=54, versions="0-1", flexible=1):
    """A resigning leader of the metadata quorum asks the voters to elect the next one.

    - v1: flexible; PreferredCandidates in place of PreferredSuccessors; LeaderEndpoints
    """

    class Topic(Struct):
        class Partition(Struct):
            class PreferredCandidate(Struct):
                """One voter that may follow."""

                candidate_id: int = int32("Node id of the voter that may follow.")
                candidate_directory_id: UUID = uuid_("Log directory of that voter; zero if unknown.")

            partition_index: int = int32("The partition's number within its topic.")
            leader_id: int = int32("Node id of the leader that steps down, the sender.")
            leader_epoch: int = int32("Epoch the sender led and now ends.")
            preferred_successors: tuple[int, ...] = array(
                int32, "Node ids of the voters, those with the most complete logs first.", until=0, ignorable=True
            )
            preferred_candidates: list[PreferredCandidate] = array(
                PreferredCandidate,
                "Voters that may follow, those with the most complete logs first.",
                since=1,
                ignorable=True,
            )

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Partitions of the topic whose leader resigns.")

    class LeaderEndpoint(Struct):
        name: str = string("Name of the listener.")
        host: str = string("Host name or address of that listener.")
        port: int = uint16("TCP port of that listener.")

    cluster_id: str | None = string("Cluster the sender belongs to; null skips the check.", nullable=True)
    topics: list[Topic] = array(Topic, "Raft-managed topics whose leader resigns; one in practice.")
    leader_endpoints: list[LeaderEndpoint] = array(
        LeaderEndpoint, "Where the sending leader can be reached, by listener.", since=1, ignorable=True
    )


class EndQuorumEpochResponse(Response, key=54, versions="0-1", flexible=1):
    """A voter takes note that the leader of the metadata quorum has resigned.

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
