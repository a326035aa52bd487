"""The list of topics, and a topic's page: its partitions and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kohort.client.administration.configs import ConfigEntry, ConfigSource
from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition
from kohort.console.growth import Growth
from kohort.console.links import records_link, topic_link
from kohort.console.live import Cell
from kohort.console.paging import Page, page_of
from kohort.console.words import NOTHING, number, pace, size, visible

TOPIC_COLUMNS: Final = ("Topic", ">Partitions", ">Replicas", "Health", ">Records/s", ">Size")
PARTITION_COLUMNS: Final = ("Partition", ">Leader", "Replicas", "In sync", ">First offset", ">End", ">Offsets", ">Size")
SETTING_COLUMNS: Final = ("Setting", "Value", "From")

MOST_PARTITIONS: Final = 1_000
"""Rows of a topic's page."""

_SOURCES: Final[Mapping[ConfigSource, str]] = {
    ConfigSource.TOPIC: "this topic",
    ConfigSource.BROKER: "the broker",
    ConfigSource.ALL_BROKERS: "all brokers",
    ConfigSource.FILE: "the broker's file",
    ConfigSource.DEFAULT: "default",
}


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic.

    Attributes:
        topic: its metadata.
        settings: by key; empty where they may not be read.
        ends: the first offset and the one after the last of each partition, None where it isn't known.
    """

    topic: TopicInfo
    settings: Mapping[str, ConfigEntry]
    ends: Mapping[int, tuple[int | None, int | None]]

    @property
    def offsets(self) -> int:
        """How many offsets there are between first and last: as many records at most."""
        return sum(end - first for first, end in self.ends.values() if first is not None and end is not None)

    @property
    def firsts(self) -> int | None:
        """The sum of the first offsets; None if one isn't known."""
        known = [first for first, _ in self.ends.values() if first is not None]
        return sum(known) if len(known) == len(self.ends) else None


def count_texts(report: TopicReport) -> dict[str, str]:
    """How many records there are and were, as far as offsets tell: both of the same look."""
    ends = [end for _, end in report.ends.values() if end is not None]
    return {"offsets": number(report.offsets), "ends": number(sum(ends)) if ends else NOTHING}


def choose(topics: Iterable[TopicInfo], text: str, page: int, *, internal: bool) -> Page[TopicInfo]:
    """The topics on a page: those whose names have `text` in them, and with `internal` Kafka's own ones, too."""
    wanted = text.casefold()
    found = [each for each in topics if (internal or not each.internal) and wanted in each.name.casefold()]
    return page_of(sorted(found, key=lambda topic: topic.name), page)


def topic_rows(
    topics: Iterable[TopicInfo], grown: Callable[[str], Growth] = lambda _: Growth()
) -> dict[str, tuple[Cell, ...]]:
    """The rows of a list of topics; `grown` knows how each has grown."""
    return {topic.name: (*_topic_row(topic), *_grown(grown(topic.name))) for topic in topics}


def _grown(growth: Growth) -> tuple[Cell, Cell]:
    sizes = growth.sizes.recent
    return (
        Cell(NOTHING if growth.per_second is None else pace(growth.per_second)),
        Cell(size(sizes[-1].value) if sizes else NOTHING),
    )


def _topic_row(topic: TopicInfo) -> tuple[Cell, ...]:
    return (
        Cell(visible(topic.name), topic_link(topic.name)),
        Cell(number(len(topic.partitions))),
        Cell(number(max((len(each.replicas) for each in topic.partitions.values()), default=0))),
        health(topic.partitions.values()),
    )


def health(partitions: Iterable[PartitionInfo]) -> Cell:
    """Whether all partitions have leaders and all their replicas."""
    some = list(partitions)
    leaderless = sum(each.leader is None for each in some)
    behind = sum(len(each.in_sync) < len(each.replicas) for each in some)
    problems = [f"{leaderless} without a leader"] if leaderless else []
    problems += [f"{behind} under-replicated"] if behind else []
    return Cell(", ".join(problems), tone="bad" if leaderless else "warn") if problems else Cell("fine", tone="good")


def partition_rows(
    report: TopicReport, sizes: Mapping[TopicPartition, int] | None = None
) -> dict[str, tuple[Cell, ...]]:
    """The rows of a topic's partitions; each leads to its records. `sizes` are bytes, as far as they are known."""
    rows: dict[str, tuple[Cell, ...]] = {}
    for at, each in sorted(report.topic.partitions.items())[:MOST_PARTITIONS]:
        first, end = report.ends.get(at, (None, None))
        taken = None if sizes is None else sizes.get(TopicPartition(report.topic.name, at))
        rows[str(at)] = (
            Cell(str(at), records_link(report.topic.name, at)),
            Cell("none", tone="bad") if each.leader is None else Cell(str(each.leader)),
            Cell(", ".join(map(str, each.replicas)) or NOTHING),
            Cell(", ".join(map(str, each.in_sync)) or NOTHING, tone=_sync_tone(each)),
            Cell(number(first)),
            Cell(number(end)),
            Cell(NOTHING if first is None or end is None else number(end - first)),
            Cell(NOTHING if taken is None else size(taken)),
        )
    return rows


def setting_rows(settings: Mapping[str, ConfigEntry], *, own: bool) -> dict[str, tuple[Cell, ...]]:
    """The rows of the settings that the topic has itself, or of the others."""
    return {
        key: (
            Cell(visible(key)),
            Cell(
                "secret" if entry.sensitive else NOTHING if entry.value is None else visible(entry.value) or "(empty)"
            ),
            Cell(_SOURCES.get(entry.source, "elsewhere")),
        )
        for key, entry in settings.items()
        if (entry.source is ConfigSource.TOPIC) is own
    }


def _sync_tone(partition: PartitionInfo) -> str:
    return "warn" if len(partition.in_sync) < len(partition.replicas) else ""
