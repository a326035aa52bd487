"""LeaveGroup: API 13."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible=4):
    """A member leaves its classic group, or an admin removes members from it.

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: several members at once, static ones too: Members replaces MemberId
    - v4: flexible
    - v5: Reason
    """

    class Member(Struct):
        member_id: str = string("Id of the member that leaves; may be empty if it is static.")
        group_instance_id: str | None = string(
            "Static name (group.instance.id) of the member; null for a dynamic one.", nullable=True
        )
        reason: str | None = string(
            "Why it leaves, for the broker's log; null if it gives none.", since=5, nullable=True, ignorable=True
        )

    group_id: str = string("The group that the members leave.")
    member_id: str = string("Id of the member that leaves.", until=2)
    members: list[Member] = array(Member, "The members that leave.", since=3)


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible=4):
    """Tells whether the members were removed from the group.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: Members, with an error each
    - v4: flexible
    """

    class Member(Struct):
        member_id: str = string("Id of the member, as it was asked for.")
        group_instance_id: str | None = string(
            "Static name (group.instance.id) of the member; null for a dynamic one.", nullable=True, default=""
        )
        error_code: int = int16("0, or why this member wasn't removed.")

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
    members: list[Member] = array(Member, "The outcomes, by member.", since=3)
