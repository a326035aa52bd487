"""Groups that a test makes up, instead of those of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupType
from kohort.client.errors import ConnectionLostError, PartialFailureError
from kohort.client.types import Broker, TopicPartition
from kohort.console.group_page import GroupReport

__all__ = ["MadeUp"]

PARTITION = TopicPartition("t", 0)


@dataclass
class MadeUp:
    """Groups by name, with their lag.

    Attributes:
        lags: the lag of each; None for one that can't be read.
        asked: the names of the groups of each look.
        failing: whether the cluster doesn't answer.
        silent: the broker that doesn't list its groups, if one doesn't.
    """

    lags: dict[str, int | None]
    asked: list[list[str]] = field(default_factory=list)
    failing: bool = False
    silent: int | None = None

    async def groups(self) -> list[GroupListing]:
        if self.failing:
            raise ConnectionLostError("the connection is lost")
        listed = [GroupListing(name, GroupType.CLASSIC, "Empty", "", 1) for name in sorted(self.lags)]
        if self.silent is not None:
            raise PartialFailureError({1: listed}, {self.silent: ConnectionLostError("the connection is lost")})
        return listed

    async def look(self, types: Mapping[str, GroupType]) -> dict[str, GroupReport]:
        self.asked.append(list(types))
        return {name: report(name, lag) for name in types if (lag := self.lags.get(name)) is not None}


def report(name: str, lag: int) -> GroupReport:
    """A group without members, with one partition."""
    group = GroupDescription(
        group_id=name,
        type=GroupType.CLASSIC,
        state="Empty",
        coordinator=Broker(1, "here", 9092),
        assignor="",
        protocol_type="",
        epoch=None,
        assignment_epoch=None,
        members=(),
    )
    return GroupReport(group, {PARTITION: PartitionLag(0, lag, lag)})
