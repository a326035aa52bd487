"""DeleteGroups: API 42."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, key=42, versions="0-3", flexible=2):
    """Deletes groups that have no members left, along with their committed offsets.

    - v1: same bytes; the broker answers before it throttles, so the client must hold back
    - v2: flexible
    - v3 (Kafka 4.4): same layout; the response has an ErrorMessage for each group
    """

    groups_names: tuple[str, ...] = array(string, "Ids of the groups to delete; each must be empty.")


class DeleteGroupsResponse(Response, key=42, versions="0-3", flexible=2):
    """Says for each group whether it was deleted.

    - v1: same bytes; sent before throttling on a quota violation
    - v2: flexible
    - v3 (Kafka 4.4): ErrorMessage
    """

    class Result(Struct):
        group_id: str = string("Id of the group this outcome is about.")
        error_code: int = int16("0 if the group is gone, or why it was kept.")
        error_message: str | None = string(
            "Why it was kept, for people; null without an error.", since=3, nullable=True, default=None, ignorable=True
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "One outcome per requested group.")
