"""SyncGroup: API 14."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, bytes_, int16, int32, string


class SyncGroupRequest(Request, key=14, versions="0-5", flexible=4):
    """After joining, members ask for their assignment; the leader hands in everyone's.

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: static members: GroupInstanceId
    - v4: flexible
    - v5: ProtocolType and ProtocolName, which the coordinator checks
    """

    class Assignment(Struct):
        member_id: str = string("Member that receives it.")
        assignment: bytes = bytes_("What it gets, in the assignor's own format.")

    group_id: str = string("The group the member belongs to.")
    generation_id: int = int32("The generation the member joined in.")
    member_id: str = string("Id the coordinator gave the member.")
    group_instance_id: str | None = string(
        "Static name (group.instance.id) of the member; null for a dynamic one.", since=3, nullable=True
    )
    protocol_type: str | None = string(
        "Kind of group the member expects, such as consumer; null to leave unchecked.",
        since=5,
        nullable=True,
        ignorable=True,
    )
    protocol_name: str | None = string(
        "Assignor the member expects, such as range; null to leave unchecked.", since=5, nullable=True, ignorable=True
    )
    assignments: list[Assignment] = array(Assignment, "Who gets what, from the leader; empty from the others.")


class SyncGroupResponse(Response, key=14, versions="0-5", flexible=4):
    """Gives a member the assignment that the leader made for it.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: flexible
    - v5: ProtocolType and ProtocolName
    """

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
    protocol_type: str | None = string(
        "Kind of group, such as consumer; null on an error.", since=5, nullable=True, ignorable=True
    )
    protocol_name: str | None = string(
        "Assignor of this generation, such as range; null on an error.", since=5, nullable=True, ignorable=True
    )
    assignment: bytes = bytes_("What the member gets, in the assignor's own format; empty on an error.")
