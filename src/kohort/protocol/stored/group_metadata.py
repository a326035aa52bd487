"""Records of type 2 in `__consumer_offsets`: group metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, bytes_, int32, int64, string


class MemberMetadata(Struct):
    """One member of the classic group."""

    member_id: str = string("Id the coordinator gave to the member.")
    group_instance_id: str | None = string(
        "Name of a static member; null = a dynamic member.", since=3, nullable=True, ignorable=True
    )
    client_id: str = string("The client.id that the member sends in its requests.")
    client_host: str = string("Address from which the member connects.")
    rebalance_timeout: int = int32(
        "Time the member has to rejoin in a rebalance, in ms; -1 = its session timeout.",
        since=1,
        default=-1,
        ignorable=True,
    )
    session_timeout: int = int32("Silence after which the member counts as gone, in ms.")
    subscription: bytes = bytes_("What the member sent on joining for the chosen protocol, opaque to the broker.")
    assignment: bytes = bytes_("What the leader gave to the member, opaque to the broker.")


class GroupMetadataKey(Data, key=2, versions="0"):
    """Key: a classic group with its members."""

    group: str = string("Id of the classic group.")


class GroupMetadataValue(Data, key=2, versions="0-4", flexible=4):
    """Value: a classic group after a rebalance, with its members and their assignments.

    - v1: rebalanceTimeout, apart from the session timeout
    - v2: currentStateTimestamp
    - v3: static members: groupInstanceId
    - v4: flexible
    """

    protocol_type: str = string("What the group is for: consumer, connect, or empty for offsets only.")
    generation: int = int32("Generation, one more after each rebalance.")
    protocol: str | None = string(
        "Assignor the members settled on; null while the group is empty.", nullable=True, default=""
    )
    leader: str | None = string(
        "Member that computes the assignment; null while the group is empty.", nullable=True, default=""
    )
    current_state_timestamp: int = int64(
        "When the group last changed its state, in ms since 1970; -1 = unknown.", since=2, default=-1, ignorable=True
    )
    members: list[MemberMetadata] = array(MemberMetadata, "All members; empty when only offsets are kept.")
