"""JoinGroup: API 11."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, bytes_, int16, int32, string


class JoinGroupRequest(Request, key=11, versions="0-9", flexible=6):
    """A member joins a classic group, or joins again in a rebalance.

    - v1: RebalanceTimeoutMs (before, the session timeout serves)
    - v2: the response has a throttle time
    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: no change on the wire: a new member gets MEMBER_ID_REQUIRED and an id, and joins again with it
    - v5: static members: GroupInstanceId
    - v6: flexible
    - v7: the response has the protocol type
    - v8: Reason
    - v9: the response has SkipAssignment
    """

    class Protocol(Struct):
        """One assignor, and the member's data for it."""

        name: str = string("Name of the assignor, such as range.")
        metadata: bytes = bytes_("What the assignor gets to know of the member; for consumers, a subscription.")

    group_id: str = string("The group to join.")
    session_timeout_ms: int = int32("Without a heartbeat for so many ms, the member is expelled.")
    rebalance_timeout_ms: int = int32(
        "How long members get to rejoin in a rebalance, in ms.", since=1, default=-1, ignorable=True
    )
    member_id: str = string("The id the coordinator gave the member; empty on its first join.")
    group_instance_id: str | None = string(
        "Static name (group.instance.id) of the member; null for a dynamic one.", since=5, nullable=True
    )
    protocol_type: str = string("Kind of group: consumer for consumers, connect for Connect workers.")
    protocols: list[Protocol] = array(Protocol, "Assignors the member can work with, the preferred one first.")
    reason: str | None = string(
        "Why the member joins, for the broker's log; null if it gives none.", since=8, nullable=True, ignorable=True
    )


class JoinGroupResponse(Response, key=11, versions="0-9", flexible=6):
    """Ends the joining phase: tells the new generation, the leader, and to the leader the members.

    - v2: ThrottleTimeMs
    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: no change on the wire: MEMBER_ID_REQUIRED comes with an id to join again with
    - v5: GroupInstanceId of the members
    - v6: flexible
    - v7: ProtocolType; ProtocolName may be null
    - v9: SkipAssignment
    """

    class Member(Struct):
        """One member, as the leader sees it."""

        member_id: str = string("Id the coordinator gave this member.")
        group_instance_id: str | None = string(
            "Static name (group.instance.id) of the member; null for a dynamic one.",
            since=5,
            nullable=True,
            ignorable=True,
        )
        metadata: bytes = bytes_("What this member sent for the chosen assignor.")

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=2, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
    generation_id: int = int32("The generation that begins; -1 on an error.", default=-1)
    protocol_type: str | None = string(
        "Kind of group, such as consumer; null on an error.", since=7, nullable=True, ignorable=True
    )
    protocol_name: str | None = string(
        "The assignor every member has to use; null (formerly empty) on an error.", nullable_since=7, default=""
    )
    leader: str = string("Member id of the one who computes the assignment.")
    skip_assignment: bool = boolean(
        "The assignment stays, so the leader computes none (static leader came back).", since=9
    )
    member_id: str = string("Id of the member that asked, to use in later requests.")
    members: list[Member] = array(Member, "All members if the receiver leads, else empty.")
