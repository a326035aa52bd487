"""AlterClientQuotas: API 49."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, float64, int16, int32, string


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible=1):
    """Sets or removes quotas of users, client ids and ip addresses.

    - v1: flexible
    """

    class Entry(Struct):
        class Entity(Struct):
            """One part of an entity's name."""

            entity_type: str = string("Part of the entity this names: user, client-id or ip.")
            entity_name: str | None = string(
                "Which user, client id or ip; null is the default for that type.", nullable=True, default=""
            )

        class Op(Struct):
            key: str = string("Name of the quota, such as producer_byte_rate or request_percentage.")
            value: float = float64("New limit, in the quota's own unit; not read when Remove is true.")
            remove: bool = boolean("True drops the quota, false sets it to Value.")

        entity: list[Entity] = array(Entity, "Parts that together name the entity, say a user and a client id.")
        ops: list[Op] = array(Op, "Changes to make to this entity's quotas.")

    entries: list[Entry] = array(Entry, "Entities to change, each with its changes.")
    validate_only: bool = boolean("True to check the changes without applying them.")


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible=1):
    """Says for each entity whether its quotas were changed.

    - v1: flexible
    """

    class Entry(Struct):
        class Entity(Struct):
            """One part of an entity's name."""

            entity_type: str = string("Part of the entity this names: user, client-id or ip.")
            entity_name: str | None = string(
                "Which user, client id or ip; null is the default for that type.", nullable=True, default=""
            )

        error_code: int = int16("0, or why this entity's quotas stay as they were.")
        error_message: str | None = string(
            "Why it failed, for people; null without an error.", nullable=True, default=""
        )
        entity: list[Entity] = array(Entity, "Parts that together name the entity, as requested.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    entries: list[Entry] = array(Entry, "One outcome per entity.")
