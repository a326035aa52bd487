"""Heartbeat: API 12."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import int16, int32, string


class HeartbeatRequest(Request, key=12, versions="0-4", flexible=4):
    """A member of a classic group stays alive, and learns whether a rebalance has started.

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: static members: GroupInstanceId
    - v4: flexible
    """

    group_id: str = string("The group the member belongs to.")
    generation_id: int = int32("The generation the member joined in.")
    member_id: str = string("Id the coordinator gave the member.")
    group_instance_id: str | None = string(
        "Static name (group.instance.id) of the member; null for a dynamic one.", since=3, nullable=True
    )


class HeartbeatResponse(Response, key=12, versions="0-4", flexible=4):
    """Tells a member that all is well, or that it has to rejoin.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: flexible
    """

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.")
