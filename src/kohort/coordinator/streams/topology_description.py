"""Descriptions of topologies (KIP-1331): how the nodes of an application are connected, for people who look at a group.

The coordinator asks members for the description of the group's topology until one sends it. It is kept in memory: after
a restart, members are asked again. Kafka hands descriptions to a plugin, and asks for none without one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
)

MAX_NODES: Final = 20_000
"""Nodes of the largest description that is kept: more than people can look at, and some MB."""


class DescriptionStatus(enum.IntEnum):
    """What StreamsGroupDescribe says about a description, with Kafka's numbers."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """The description of a topology.

    Attributes:
        epoch: the topology's.
        description: None if a member has sent one that can't be kept.
    """

    epoch: int
    description: TopologyDescription | None


def described(request: StreamsGroupTopologyDescriptionUpdateRequest) -> Described:
    """What to keep of a request."""
    description = request.topology_description
    nodes = 2 * len(description.global_stores) + sum(len(each.nodes) for each in description.subtopologies)
    return Described(request.topology_epoch, description if nodes <= MAX_NODES else None)


def check_update(request: StreamsGroupTopologyDescriptionUpdateRequest) -> None:
    """Raises INVALID_REQUEST for a request that is wrong whatever the group."""
    for name, value in (("GroupId", request.group_id), ("MemberId", request.member_id)):
        if not value.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} must not be empty.")
