"""The members of a share group: what they say about themselves, and how they have partitions."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from kohort.coordinator.modern.reconciliation import Conversion, Rules
from kohort.coordinator.step import Client
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


class Role(enum.Enum):
    """How a member has a partition: always together with others."""

    SHARED = "shared"


def _conversion(before: Role, after: Role) -> Conversion:
    del before, after
    return Conversion.AT_ONCE


RULES: Final = Rules(exclusive=frozenset[Role](), conversion=_conversion, waits=False)
"""No member waits for another."""


@dataclass(frozen=True, slots=True)
class ShareMetadata:
    """A member's metadata, from its heartbeats.

    Attributes:
        rack_id: its rack; None if it didn't send one.
        client_host: the address of its latest heartbeat.
        topics: names of the topics that it subscribes to, sorted.
    """

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()

    @property
    def instance_id(self) -> str | None:
        """None: there are no static members in share groups."""
        return None

    def merged(self, request: ShareGroupHeartbeatRequest, client: Client) -> ShareMetadata:
        """The metadata after a heartbeat: what that leaves out stays."""
        names = request.subscribed_topic_names
        return replace(
            self,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client.client_id,
            client_host=client.host,
            topics=self.topics if names is None else tuple(sorted(set(names))),
        )
