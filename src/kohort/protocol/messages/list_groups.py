"""ListGroups: API 16."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class ListGroupsRequest(Request, key=16, versions="0-5", flexible=3):
    """Asks one broker for the groups it coordinates.

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible
    - v4: StatesFilter
    - v5: TypesFilter
    """

    states_filter: tuple[str, ...] = array(
        string, "Only groups in one of these states, such as Stable; empty for any.", since=4
    )
    types_filter: tuple[str, ...] = array(
        string, "Only groups of these types, such as classic or consumer; empty for any.", since=5
    )


class ListGroupsResponse(Response, key=16, versions="0-5", flexible=3):
    """The groups that the broker coordinates.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible
    - v4: GroupState
    - v5: GroupType
    """

    class Group(Struct):
        group_id: str = string("Id of the group listed.")
        protocol_type: str = string("Kind of client, such as consumer; empty for a group of mere offsets.")
        group_state: str = string("State it is in, such as Stable or Empty.", since=4, ignorable=True)
        group_type: str = string(
            "Which protocol it runs: classic, consumer, share or streams.", since=5, ignorable=True
        )

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
    groups: list[Group] = array(Group, "The groups that pass the filters.")
