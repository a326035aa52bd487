"""UpdateRaftVoter: API 82."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string, struct, uint16, uuid_


class UpdateRaftVoterRequest(Request, key=82, versions="0", flexible=0):
    """A voter tells the quorum's leader its present addresses and the kraft.version range it supports."""

    class Listener(Struct):
        name: str = string("Listener name, as in CONTROLLER.")
        host: str = string("Host name to connect to.")
        port: int = uint16("TCP port to connect to.")

    class KRaftVersionFeature(Struct):
        """A range of kraft.version levels."""

        min_supported_version: int = int16("Lowest kraft.version level, inclusive.")
        max_supported_version: int = int16("Highest kraft.version level, inclusive.")

    cluster_id: str | None = string("Cluster the request is meant for; null = any.", nullable=True, default="")
    current_leader_epoch: int = int32("Leader epoch the sender knows; -1 if it knows none.")
    voter_id: int = int32("Node id of the voter, which is the sender.")
    voter_directory_id: UUID = uuid_("Id of the voter's metadata log directory.")
    listeners: list[Listener] = array(Listener, "Where the voter can now be reached.")
    k_raft_version_feature: KRaftVersionFeature = struct(
        KRaftVersionFeature, "Levels of the kraft.version feature the voter can work with."
    )


class UpdateRaftVoterResponse(Response, key=82, versions="0", flexible=0):
    """Says whether the voter's data was updated, and who leads the quorum now."""

    class CurrentLeader(Struct):
        leader_id: int = int32("Node id of the leading controller; -1 = unknown.", default=-1)
        leader_epoch: int = int32("Newest leader epoch the answering node knows; -1 = none.", default=-1)
        host: str = string("Host name of the leader.")
        port: int = int32("TCP port of the leader.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    current_leader: CurrentLeader | None = struct(CurrentLeader, "Who leads the metadata quorum, and where.", tag=0)
