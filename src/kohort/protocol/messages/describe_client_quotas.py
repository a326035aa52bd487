"""DescribeClientQuotas: API 48."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible=1):
    """Looks up the quotas of users, client ids and ip addresses that match a filter.

    - v1: flexible
    """

    class Component(Struct):
        """Condition on one part of the entity."""

        entity_type: str = string("Part of the entity to look at: user, client-id or ip.")
        match_type: int = int8("0 = the name in Match, 1 = the default entity, 2 = any.")
        match: str | None = string(
            "Name to look for with MatchType 0; null with the others.", nullable=True, default=""
        )

    components: list[Component] = array(Component, "Conditions an entity must all meet; empty = no condition.")
    strict: bool = boolean("True to leave out entities with types that no condition names.")


class DescribeClientQuotasResponse(Response, key=48, versions="0-1", flexible=1):
    """The quotas of every entity that matched the filter.

    - v1: flexible
    """

    class Entry(Struct):
        class Entity(Struct):
            """One part of an entity's name."""

            entity_type: str = string("Part of the entity this names: user, client-id or ip.")
            entity_name: str | None = string(
                "Which user, client id or ip; null is the default for that type.", nullable=True, default=""
            )

        class Value(Struct):
            key: str = string("Name of the quota, such as producer_byte_rate or request_percentage.")
            value: float = float64("Limit, in the quota's own unit: bytes/s, percent, changes/s and so on.")

        entity: list[Entity] = array(Entity, "Parts that together name the entity, say a user and a client id.")
        values: list[Value] = array(Value, "Quotas set on exactly this entity.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    entries: list[Entry] | None = array(
        Entry, "Matching entities with their quotas; null after an error.", nullable=True, default=[]
    )
