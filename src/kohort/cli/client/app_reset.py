"""What belongs to a streams application: its group, its internal topics and its state on this machine.

| Topic | Whose it is |
| --- | --- |
| in the group's topology as repartition topic or changelog | the application's |
| named `{application id}-…-changelog` or `-repartition` | likely the application's; a user's may be, too |
| the same, but a source by the topology, or named after a group with a longer name | somebody else's |
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.terminal import Line
from kohort.client.administration.group_types import GroupType

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupDescription

APPLICATION_TYPES: Final = (GroupType.STREAMS, GroupType.CLASSIC)
"""Group protocols of streams applications."""
_PROTOCOL_TYPES: Final = ("", "consumer", "stream", "streams")
"""Those of Kafka Streams and Kohort; Connect's and others' have their own. Empty groups may have none."""

_INTERNAL: Final = re.compile(
    r"-(changelog|repartition|subscription-(registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)$"
)
"""Ends of the names of internal topics, Kafka Streams' among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """What belongs to an application.

    Attributes:
        application_id: its name, which is its group's.
        group: None if there is no group of that name (any more).
        topics: its internal topics, by its topology.
        by_name: topics that only their names tell.
        state: its state directory on this machine; None if there is none, or nobody asked.
    """

    application_id: str
    group: GroupDescription | None
    topics: tuple[str, ...]
    by_name: tuple[str, ...]
    state: Path | None = None

    @property
    def nothing(self) -> bool:
        """Whether nothing was found."""
        return self.group is None and not self.topics and not self.by_name and self.state is None

    @property
    def unsure(self) -> bool:
        """Whether names alone tell what is the application's, and of a classic group that it is one's at all."""
        if self.group is None:
            return bool(self.by_name)
        return self.group.topology is None and (bool(self.by_name) or self.state is None)

    @property
    def is_another(self) -> bool:
        """Whether the group is something else's than a streams application's."""
        group = self.group
        return group is not None and (group.type not in APPLICATION_TYPES or group.protocol_type not in _PROTOCOL_TYPES)

    def still(self, later: Belongings) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of `topics` and `by_name` what belongs to it later, too: nothing that wasn't shown."""
        return (
            tuple(topic for topic in self.topics if topic in later.topics),
            tuple(topic for topic in self.by_name if topic in later.by_name),
        )


def belongings(
    application_id: str,
    group: GroupDescription | None,
    *,
    topics: Collection[str],
    groups: Collection[str],
    read: Collection[str],
    state: Path | None = None,
) -> Belongings:
    """Tells what belongs to an application.

    Args:
        application_id, group, state: as in `Belongings`.
        topics: all topics of the cluster.
        groups: the names of all groups.
        read: topics that the group has committed offsets of.
    """
    topology = None if group is None else group.topology
    known = frozenset[str]() if topology is None else topology.internal_topics
    if topology is None:
        sources = {topic for topic in read if not topic.endswith(("-repartition", "-topic"))}
    else:
        sources = {topic for each in topology.subtopologies.values() for topic in each.source_topics}
    longer = tuple(f"{name}-" for name in groups if name.startswith(f"{application_id}-"))
    named = {
        topic
        for topic in topics
        if topic.startswith(f"{application_id}-") and _INTERNAL.search(topic) and not topic.startswith(longer)
    }
    return Belongings(
        application_id=application_id,
        group=group,
        topics=tuple(sorted(known & set(topics))),
        by_name=tuple(sorted(named - known - sources)),
        state=state,
    )


async def find(admin: Admin, application_id: str, state: Path | None) -> Belongings:
    """Looks up what belongs to an application."""
    listed = {group.group_id: group.type for group in await admin.groups.list()}
    group, read = None, set[str]()
    if application_id in listed:
        group = (await admin.groups.describe(application_id))[application_id]
        if group.type in APPLICATION_TYPES:
            read = {at.topic for at in await admin.group_offsets.committed(application_id)}
    topics = await admin.topics.list()
    return belongings(application_id, group, topics=topics, groups=listed, read=read, state=state)


def as_lines(found: Belongings, *, by_name: bool) -> list[Line]:
    """A line for each thing: what becomes of it."""
    lines: list[Line] = []
    if found.state is not None:
        lines.append([("state directory  ", ""), (str(found.state), "")])
    lines += [[("topic            ", ""), (topic, "")] for topic in found.topics]
    for topic in found.by_name:
        lines.append([("topic            ", ""), (topic, ""), ("  by its name" if by_name else "  is left", "dim")])
    if found.group is not None:
        lines.append([("group            ", ""), (found.application_id, ""), (f"  {found.group.type.value}", "dim")])
    return lines


def as_json(found: Belongings, *, by_name: bool, done: bool) -> dict[str, Any]:
    group = found.group
    return {
        "application_id": found.application_id,
        "group": None if group is None else {"type": group.type.value, "state": group.state},
        "topics": list(found.topics),
        "topics_by_name": list(found.by_name) if by_name else [],
        "topics_left": [] if by_name else list(found.by_name),
        "state_directory": None if found.state is None else str(found.state),
        "done": done,
    }
