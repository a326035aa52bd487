"""FindCoordinator: API 10."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible=3):
    """Asks which broker coordinates a group, a transactional id or a share partition.

    - v1: KeyType (before, keys are group ids)
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible
    - v4: several keys at once: CoordinatorKeys replaces Key
    - v5: no change on the wire: TRANSACTION_ABORTABLE may come back
    - v6: no change on the wire: key type 2, for share groups
    """

    key: str = string("Group id or transactional id, according to KeyType.", until=3)
    key_type: int = int8("What keys are: 0 = group ids, 1 = transactional ids, 2 = share partitions.", since=1)
    coordinator_keys: tuple[str, ...] = array(
        string, "Group ids or transactional ids; for share, of the form group:topicId:partition.", since=4
    )


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible=3):
    """The broker that coordinates each key, and its address.

    - v1: ThrottleTimeMs and ErrorMessage
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible
    - v4: several keys at once: Coordinators replaces the single result
    - v5: no change on the wire: TRANSACTION_ABORTABLE may come back
    """

    class Coordinator(Struct):
        key: str = string("The key as it was asked for.")
        node_id: int = int32("Node id of the coordinating broker; -1 on an error.")
        host: str = string("Host to reach the coordinator at; empty on an error.")
        port: int = int32("TCP port to reach the coordinator at; -1 on an error.")
        error_code: int = int16("0, or why this key's lookup failed.")
        error_message: str | None = string(
            "Why this key's lookup failed, for people; means nothing without an error.",
            nullable=True,
            default="",
            ignorable=True,
        )

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    error_code: int = int16("0, or the error that failed the whole request.", until=3)
    error_message: str | None = string(
        "What went wrong, for people; null without an error.",
        since=1,
        until=3,
        nullable=True,
        default="",
        ignorable=True,
    )
    node_id: int = int32("Node id of the coordinating broker; -1 on an error.", until=3)
    host: str = string("Host to reach the coordinator at; empty on an error.", until=3)
    port: int = int32("TCP port to reach the coordinator at; -1 on an error.", until=3)
    coordinators: list[Coordinator] = array(Coordinator, "The coordinators found, by key.", since=4)
