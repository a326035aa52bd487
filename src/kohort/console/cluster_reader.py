"""What the console asks the brokers: lists and descriptions, and nothing that changes anything."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from kohort.client.admin import Admin
from kohort.client.administration.configs import ConfigEntry, ConfigResource, ResourceType
from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupType
from kohort.client.administration.offsets import OffsetSpec
from kohort.client.errors import ClientError, PartialFailureError
from kohort.client.placed_group import read_placed_group
from kohort.client.types import TopicInfo, TopicPartition
from kohort.console.group_page import GroupReport
from kohort.console.topic_pages import TopicReport
from kohort.coordinator.placement.model import Group
from kohort.protocol.errors import KafkaError

__all__ = ["ClusterReader", "explain"]

_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_SOON_MS = 5_000
"""For offsets of partitions: one whose leader has just died has none, and the rest is shown."""

ClusterError = (ClientError, KafkaError)
"""What is raised where the cluster doesn't answer, or refuses."""


class ClusterReader:
    """Reads groups and topics with an admin client, which is started.

    Raises, of all methods: ClientError or KafkaError if the cluster doesn't answer, or refuses.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def groups(self) -> list[GroupListing]:
        """All groups, sorted by name; PartialFailureError has lists by broker, if some brokers don't tell theirs."""
        return await self._admin.groups.list()

    async def look(self, types: Mapping[str, GroupType]) -> dict[str, GroupReport]:
        """Groups of these types with their members and lag; those that can't be read are left out."""
        known = {group_id: kind for group_id, kind in types.items() if kind is not GroupType.UNKNOWN}
        described = await self._described(known)
        owned = {group_id: group.owners() for group_id, group in described.items()}
        lags = await self._admin.group_offsets.lag_of_groups(
            {group_id: known[group_id] for group_id in described}, partitions=owned
        )
        return {
            group_id: GroupReport(
                group,
                {  # a streams task has a partition of each of its topics, which some of these may not have
                    at: lag
                    for at, lag in lags.get(group_id, {}).items()
                    if lag.committed is not None or lag.end is not None
                },
            )
            for group_id, group in described.items()
        }

    async def _described(self, types: Mapping[str, GroupType]) -> dict[str, GroupDescription]:
        try:
            return await self._admin.groups.describe(*types, types=types)
        except PartialFailureError as error:
            return {str(group_id): group for group_id, group in error.done.items()}
        except KafkaError:  # of the only one
            return {}

    async def placed(self, group_id: str) -> tuple[Group, list[str]]:
        """A streams group as placement has it, and what couldn't be found out, in sentences.

        Raises:
            NotPlaceableError: it has no tasks that can be placed; says why.
        """
        return await read_placed_group(self._admin, group_id)

    async def topics(self) -> dict[str, TopicInfo]:
        """All topics by name, Kafka's own ones, too."""
        return await self._admin.topics.list(internal=True)

    async def ends(self, topics: Collection[TopicInfo]) -> dict[TopicPartition, int]:
        """The ends of the partitions that have a leader, as far as they are told."""
        partitions = [
            TopicPartition(topic.name, at)
            for topic in topics
            for at, each in topic.partitions.items()
            if each.leader is not None
        ]
        return await self._offsets(partitions, OffsetSpec.LATEST)

    async def sizes(self) -> dict[TopicPartition, int] | None:
        """The bytes of all partitions, each where it is largest; None if they aren't told, or not to this user."""
        try:
            by_broker = await self._admin.cluster.log_dirs(timeout_ms=_SOON_MS)
        except ClusterError:
            return None
        found: dict[TopicPartition, int] = {}
        for directories in by_broker.values():
            for directory in directories:
                for at, replica in directory.replicas.items():
                    if not replica.future:
                        found[at] = max(found.get(at, 0), replica.size)
        return found

    async def dead_letter_topic(self, group_id: str) -> str:
        """Where a share group's dead letters go; "" for nowhere, or if that isn't told."""
        resource = ConfigResource(ResourceType.GROUP, group_id)
        try:
            entry = (await self._admin.configs.describe(resource))[resource].get(_DEAD_LETTERS)
        except ClusterError:
            return ""
        return "" if entry is None else entry.value or ""

    async def topic(self, name: str) -> TopicReport:
        """A topic with its settings, and with offsets of partitions that have a leader."""
        topic = (await self._admin.topics.describe(name))[name]
        partitions = [TopicPartition(name, at) for at, each in topic.partitions.items() if each.leader is not None]
        settings, first, end = await asyncio.gather(
            self._settings(name),
            self._offsets(partitions, OffsetSpec.EARLIEST),
            self._offsets(partitions, OffsetSpec.LATEST),
        )
        ends = {at: (first.get(TopicPartition(name, at)), end.get(TopicPartition(name, at))) for at in topic.partitions}
        return TopicReport(topic, settings, ends)

    async def _settings(self, topic: str) -> Mapping[str, ConfigEntry]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            return (await self._admin.configs.describe(resource))[resource]
        except KafkaError:  # they may not be read
            return {}

    async def _offsets(self, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        try:
            found = await self._admin.offsets.list(dict.fromkeys(partitions, spec), timeout_ms=_SOON_MS)
            return {at: each.offset for at, each in found.items()}
        except PartialFailureError as error:
            return {at: each.offset for at, each in error.done.items()}
        except KafkaError:
            return {}


def explain(error: Exception) -> str:
    """What a page says of an error."""
    return str(error) or type(error).__name__
