"""Control records: keys and values of control batches, such as transaction markers."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int16, int32, int64, string, struct, uint16, uuid_


class Voter(Struct):
    """One voter."""

    voter_id: int = int32("Node id of the voter.")
    voter_directory_id: UUID = uuid_("Id of the voter's metadata log directory; all zero = unknown.", since=1)


class ControlRecordTypeSchema(Data, versions="0"):
    """Key of a control record, after its two-byte version: tells what kind of record it is."""

    type: int = int16("0 abort, 1 commit, 2 new leader, 3/4 snapshot start/end, 5 KRaft version, 6 voters.")


class EndTxnMarker(Data, versions="0"):
    """Value of a commit or abort control record, after its two-byte version."""

    coordinator_epoch: int = int32("Epoch of the transaction coordinator that ended it; older ones get fenced.")


class LeaderChangeMessage(Data, versions="0-1", flexible=0):
    """Control record that a new KRaft leader writes first in its epoch.

    - v1: VoterDirectoryId, as voters can be replaced (KIP-853)
    """

    version: int = int16("Layout of this message, equal to the version it is encoded in.")
    leader_id: int = int32("Node that won the election.")
    voters: list[Voter] = array(Voter, "Every voter that the leader knows of in its epoch.")
    granting_voters: list[Voter] = array(Voter, "Those voters that gave their vote to the leader.")


class SnapshotHeaderRecord(Data, versions="0", flexible=0):
    """Control record that begins a KRaft snapshot."""

    version: int = int16("Layout of this header, 0 so far.")
    last_contained_log_timestamp: int = int64(
        "When the newest record covered by the snapshot was appended, in ms since 1970."
    )


class SnapshotFooterRecord(Data, versions="0", flexible=0):
    """Control record that ends a KRaft snapshot; without it the snapshot is incomplete."""

    version: int = int16("Layout of this footer, 0 so far.")


class KRaftVersionRecord(Data, versions="0", flexible=0):
    """Control record in the metadata log: the KRaft version in force from here on."""

    version: int = int16("Layout of this control record, 0 so far.")
    k_raft_version: int = int16("KRaft version in force: 0 = fixed voters, 1 = voters can come and go.")


class VotersRecord(Data, versions="0", flexible=0):
    """Control record in the metadata log: who the KRaft voters are from here on."""

    class Voter(Struct):
        class Endpoint(Struct):
            name: str = string("Name of the listener, e.g. CONTROLLER.")
            host: str = string("Host name or address of the listener.")
            port: int = uint16("TCP port of the listener.")

        class KRaftVersionFeature(Struct):
            """A range of KRaft versions, both ends included."""

            min_supported_version: int = int16("Lowest KRaft version the voter can work with.")
            max_supported_version: int = int16("Highest KRaft version the voter can work with.")

        voter_id: int = int32("Node id of the voter.")
        voter_directory_id: UUID = uuid_("Id of the voter's metadata log directory; all zero = unknown.")
        endpoints: list[Endpoint] = array(Endpoint, "Controller listeners at which the voter can be reached.")
        k_raft_version_feature: KRaftVersionFeature = struct(
            KRaftVersionFeature, "KRaft versions that the voter can work with."
        )

    version: int = int16("Layout of this control record, 0 so far.")
    voters: list[Voter] = array(Voter, "All voters from here on; it replaces the former set.")
