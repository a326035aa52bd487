"""Topics as tables and as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.text import Text

from kohort.cli.client.tables import table
from kohort.cli.terminal import printable
from kohort.client.administration.configs import ConfigResource, ConfigSource, ResourceType
from kohort.client.administration.offsets import OffsetSpec
from kohort.client.administration.topics import CreatedTopic
from kohort.client.errors import ClientError, PartialFailureError
from kohort.client.types import TopicInfo, TopicPartition
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.client.admin import Admin

_ENDS_MS: Final = 5000
"""Timeout of requests for offsets, in ms: a partition whose leader has just died has none, and the rest is shown."""


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic with its own settings, and with first and end offsets of its partitions where these are known."""

    topic: TopicInfo
    settings: Mapping[str, str | None]
    ends: Mapping[int, tuple[int | None, int | None]]


async def read_topics(admin: Admin, topics: Mapping[str, TopicInfo]) -> list[TopicReport]:
    """The reports of topics, without offsets of leaderless partitions, and without settings if access is denied."""
    partitions = [
        TopicPartition(name, number)
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader is not None
    ]
    first, last = await asyncio.gather(
        _offsets(admin, partitions, OffsetSpec.EARLIEST), _offsets(admin, partitions, OffsetSpec.LATEST)
    )
    reports = []
    for name, topic in topics.items():
        resource = ConfigResource(ResourceType.TOPIC, name)
        try:
            entries = (await admin.configs.describe(resource))[resource]
        except KafkaError:
            entries = {}
        own = {key: entry.value for key, entry in entries.items() if entry.source is ConfigSource.TOPIC}
        ends = {
            number: (first.get(TopicPartition(name, number)), last.get(TopicPartition(name, number)))
            for number in topic.partitions
        }
        reports.append(TopicReport(topic, own, ends))
    return reports


async def _offsets(admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
    try:
        found = await admin.offsets.list(dict.fromkeys(partitions, spec), timeout_ms=_ENDS_MS)
        return {at: each.offset for at, each in found.items()}
    except PartialFailureError as error:
        return {at: each.offset for at, each in error.done.items()}
    except (KafkaError, ClientError):
        return {}


def topics_table(topics: Iterable[TopicInfo]) -> RenderableType:
    return table(
        ("Topic", ">Partitions", ">Replicas", "Health"),
        (
            (
                topic.name,
                len(topic.partitions),
                max((len(partition.replicas) for partition in topic.partitions.values()), default=0),
                _health(topic),
            )
            for topic in topics
        ),
    )


def topics_as_json(topics: Iterable[TopicInfo]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "topic_id": str(topic.topic_id),
            "internal": topic.internal,
            "partitions": len(topic.partitions),
            "replication_factor": max((len(each.replicas) for each in topic.partitions.values()), default=0),
            "without_leader": sum(each.leader is None for each in topic.partitions.values()),
            "under_replicated": sum(len(each.in_sync) < len(each.replicas) for each in topic.partitions.values()),
        }
        for topic in topics
    ]


def topic_tables(report: TopicReport) -> list[RenderableType]:
    """A topic's header, and a line for each partition."""
    topic = report.topic
    settings = ", ".join(f"{key}={value}" for key, value in report.settings.items()) or "defaults alone"
    known = [last - first for first, last in report.ends.values() if first is not None and last is not None]
    about = f"id {topic.topic_id}\nsettings: {settings}\nrecords, by their offsets: {sum(known):,}"
    rows = [
        (
            number,
            partition.leader,
            ", ".join(map(str, partition.replicas)),
            ", ".join(map(str, partition.in_sync)),
            *report.ends[number],
        )
        for number, partition in topic.partitions.items()
    ]
    return [
        Text.assemble((printable(topic.name), "bold"), "\n", "\n".join(map(printable, about.split("\n")))),
        table((">Partition", ">Leader", "Replicas", "In sync", ">First offset", ">End"), rows),
    ]


def topic_as_json(report: TopicReport) -> dict[str, Any]:
    """A topic as JSON; unknown values are null."""
    topic = report.topic
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "internal": topic.internal,
        "settings": dict(report.settings),
        "partitions": [
            {
                "partition": number,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "in_sync": list(partition.in_sync),
                "offline": list(partition.offline),
                "first_offset": report.ends[number][0],
                "end_offset": report.ends[number][1],
            }
            for number, partition in topic.partitions.items()
        ],
    }


def created_as_json(topic: CreatedTopic) -> dict[str, Any]:
    """A topic that was created; unknown values are null."""
    return {
        "name": topic.name,
        "topic_id": None if topic.topic_id is None else str(topic.topic_id),
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }


def _health(topic: TopicInfo) -> Text:
    leaderless = sum(partition.leader is None for partition in topic.partitions.values())
    behind = sum(len(partition.in_sync) < len(partition.replicas) for partition in topic.partitions.values())
    problems = [f"{leaderless} without a leader"] if leaderless else []
    if behind:
        problems.append(f"{behind} under-replicated")
    return Text(", ".join(problems), "red" if leaderless else "yellow") if problems else Text("fine", "green")
