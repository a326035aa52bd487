"""CreateAcls: API 30."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class CreateAclsRequest(Request, key=30, versions="1-3", flexible=2):
    """Adds access rules.

    - v1: ResourcePatternType
    - v2: flexible
    - v3: same layout; the resource type user (7) is allowed
    """

    class Creation(Struct):
        resource_type: int = int8("Type: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user.")
        resource_name: str = string("Name or name prefix that the rule covers; * = every resource.")
        resource_pattern_type: int = int8("How the name is read: 3 = literally, 4 = as a prefix.", default=3)
        principal: str = string("Who the rule is about, as in User:alice; User:* = everyone.")
        host: str = string("Address the rule applies to; * = every host.")
        operation: int = int8("2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, up to 15.")
        permission_type: int = int8("What the rule does: 2 = deny, 3 = allow.")

    creations: list[Creation] = array(Creation, "Rules to add; each succeeds or fails alone.")


class CreateAclsResponse(Response, key=30, versions="1-3", flexible=2):
    """Says for each access rule whether it was added.

    - v2: flexible
    """

    class Result(Struct):
        error_code: int = int16("0, or why this rule was not added.")
        error_message: str | None = string(
            "Why this rule was not added, for people; null on success.", nullable=True, default=""
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "Outcomes, in the order of the request's rules.")
