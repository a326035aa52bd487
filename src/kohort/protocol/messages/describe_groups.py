"""DescribeGroups: API 15."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible=5):
    """Asks the coordinator for the state and the members of classic groups.

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: IncludeAuthorizedOperations
    - v4: the response has GroupInstanceId
    - v5: flexible
    - v6: the response has ErrorMessage; an unknown group is GROUP_ID_NOT_FOUND
    """

    groups: tuple[str, ...] = array(string, "Ids of the groups asked about.")
    include_authorized_operations: bool = boolean("Also tell what the caller may do with each group.", since=3)


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible=5):
    """State, assignor and members of each group asked for.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: AuthorizedOperations
    - v4: GroupInstanceId
    - v5: flexible
    - v6: ErrorMessage; an unknown group is GROUP_ID_NOT_FOUND, no longer a Dead group
    """

    class Group(Struct):
        class Member(Struct):
            member_id: str = string("Id the coordinator gave this member.")
            group_instance_id: str | None = string(
                "Static name (group.instance.id) of the member; null for a dynamic one.",
                since=4,
                nullable=True,
                ignorable=True,
            )
            client_id: str = string("The client.id the member joined with.")
            client_host: str = string("Address the member connected from.")
            member_metadata: bytes = bytes_("What it sent for the assignor in use; empty unless Stable.")
            member_assignment: bytes = bytes_("What the leader gave it; empty unless the group is Stable.")

        error_code: int = int16("0, or why this group failed.")
        error_message: str | None = string(
            "Why this group failed, for people; null without an error.", since=6, nullable=True
        )
        group_id: str = string("Id of the group described.")
        group_state: str = string("Empty, PreparingRebalance, CompletingRebalance, Stable, Dead; or no text.")
        protocol_type: str = string("Kind of group, such as consumer; empty if it has none yet.")
        protocol_data: str = string("Name of the assignor in use while Stable, else empty.")
        members: list[Member] = array(Member, "The members; none when the group is Dead.")
        authorized_operations: int = int32(
            "Bit n set: the caller may do ACL operation n; -2147483648 if not asked for.", since=3, default=-2147483648
        )

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    groups: list[Group] = array(Group, "The groups asked for.")
