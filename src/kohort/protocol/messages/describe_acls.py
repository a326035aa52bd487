"""DescribeAcls: API 29."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, key=29, versions="1-3", flexible=2):
    """Lists the access rules that match a filter.

    - v1: PatternTypeFilter
    - v2: flexible
    - v3: same layout; the resource type user (7) is allowed
    """

    resource_type_filter: int = int8("1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user.")
    resource_name_filter: str | None = string("Name to look for; null = every name.", nullable=True, default="")
    pattern_type_filter: int = int8("1 any pattern, 2 all that cover the name, 3 literal, 4 prefixed.", default=3)
    principal_filter: str | None = string(
        "Principal to look for, as in User:alice; null = everyone.", nullable=True, default=""
    )
    host_filter: str | None = string("Host to look for; null = every host.", nullable=True, default="")
    operation: int = int8("Operation to match: 1 any, 2 all, 3 read, 4 write, 5 create, up to 15.")
    permission_type: int = int8("Kind of rule to match: 1 any, 2 deny, 3 allow.")


class DescribeAclsResponse(Response, key=29, versions="1-3", flexible=2):
    """The access rules that matched the filter, by resource pattern.

    - v1: PatternType
    - v2: flexible
    - v3: same layout; the resource type user (7) is allowed
    """

    class Resource(Struct):
        class Acl(Struct):
            """One rule: who may or may not do what, from where."""

            principal: str = string("Who the rule is about, as in User:alice; User:* = everyone.")
            host: str = string("Address the rule applies to; * = every host.")
            operation: int = int8("2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, up to 15.")
            permission_type: int = int8("What the rule does: 2 = deny, 3 = allow.")

        resource_type: int = int8("Type: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user.")
        resource_name: str = string("Name or name prefix that the rule covers; * = every resource.")
        pattern_type: int = int8("How the name is read: 3 = literally, 4 = as a prefix.", default=3)
        acls: list[Acl] = array(Acl, "Matching rules on this pattern.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    resources: list[Resource] = array(Resource, "Resource patterns with at least one matching rule.")
