"""Vote: API 52."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string, uint16, uuid_


class VoteRequest(Request, key=52, versions="0-2", flexible=0):
    """A replica of the metadata quorum asks a voter for its vote to become leader.

    - v1: voters by directory: VoterId, ReplicaDirectoryId, VoterDirectoryId
    - v2: PreVote; CandidateEpoch and CandidateId are now named ReplicaEpoch and ReplicaId
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            replica_epoch: int = int32("Epoch the sender stands in; with PreVote, the one it is still in.")
            replica_id: int = int32("Node id of the replica that asks for the vote.")
            replica_directory_id: UUID = uuid_(
                "Log directory of the replica that asks; zero if unknown.", since=1, ignorable=True
            )
            voter_directory_id: UUID = uuid_(
                "Log directory of the voter this is meant for; zero if unknown.", since=1, ignorable=True
            )
            last_offset_epoch: int = int32("Leader epoch in which the sender's last record was written.")
            last_offset: int = int64("Offset after the last record in the sender's log.")
            pre_vote: bool = boolean("True only sounds voters out: no epoch is raised and no vote stored.", since=2)

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "Elections of the topic; partition 0 only in practice.")

    cluster_id: str | None = string("Cluster the sender belongs to; null skips the check.", nullable=True)
    voter_id: int = int32(
        "Node id of the voter this is meant for; -1 skips the check.", since=1, default=-1, ignorable=True
    )
    topics: list[Topic] = array(Topic, "Raft-managed topics asked about; one entry in practice.")


class VoteResponse(Response, key=52, versions="0-2", flexible=0):
    """A voter grants or refuses its vote and says which leader it knows of.

    - v1: NodeEndpoints
    - v2: same bytes; also answers PreVote requests
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why the receiver refused for this partition.")
            leader_id: int = int32("Leader the responder knows of; -1 if it knows none.")
            leader_epoch: int = int32("Highest leader epoch the responder has seen.")
            vote_granted: bool = boolean("True if the voter backs the sender.")

        topic_name: str = string("Name of the topic; always __cluster_metadata in practice.")
        partitions: list[Partition] = array(Partition, "One vote per partition.")

    class NodeEndpoint(Struct):
        node_id: int = int32("Node id of the leader.")
        host: str = string("Host name or address the leader listens on.")
        port: int = uint16("TCP port the leader listens on.")

    error_code: int = int16("0, or the error that failed the whole request.")
    topics: list[Topic] = array(Topic, "Votes by topic.")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "Where to reach the leaders named above.", since=1, tag=0)
