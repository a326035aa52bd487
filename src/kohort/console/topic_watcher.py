"""Looks at the cluster's topics again and again: how far each has grown, and what it takes on disks."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from kohort.client.types import TopicInfo, TopicPartition
from kohort.console.growth import GrowthBook, sum_by_topic
from kohort.console.looks import Looks
from kohort.console.topic_pages import TopicReport

EVERY_S: Final = 2.0
"""From one look to the next."""

BATCH: Final = 2_000
"""Partitions of one look, unless topics on open pages have more: of more, each topic gets its turn."""

SIZES_S: Final = 30.0
"""From one question after sizes to the next, at least: brokers tell those of all replicas at once."""

LARGE: Final = 5_000
"""Partitions of a cluster whose topics aren't listed for each look."""

LIST_S: Final = 30.0
"""From one list of the topics of such a cluster to the next."""

PAGE_LIST_S: Final = 5.0
"""How old that list may be for the page of topics: it takes longer to be told and read than the rest of the page."""

_SHARE: Final = 9
"""Times as long as a look took, that the watcher rests after it."""

_LONGEST_REST_S: Final = 60.0


class ReadsTopics(Protocol):
    """What the watcher asks; `ClusterReader` has it."""

    async def topics(self) -> dict[str, TopicInfo]:
        """All topics by name."""
        ...

    async def ends(self, topics: Collection[TopicInfo]) -> dict[TopicPartition, int]:
        """The ends of partitions, as far as they are told."""
        ...

    async def sizes(self) -> dict[TopicPartition, int] | None:
        """The bytes of all partitions; None if they aren't told."""
        ...


class TopicWatcher(Looks):
    """What is known of the topics' growth.

    Args:
        reader: asks the brokers.
        every: seconds from one look to the next.
        batch: partitions of one look.

    Attributes:
        book: growth by topic.
        sizes: bytes of all partitions, as they were told last; empty while they aren't.
        gone: names on open pages of topics that aren't there any more.
    """

    def __init__(self, reader: ReadsTopics, *, every: float = EVERY_S, batch: int = BATCH) -> None:
        super().__init__("topics", every=every, share=_SHARE, longest_rest_s=_LONGEST_REST_S)
        self._reader = reader
        self._batch = batch
        self._ends: dict[str, dict[int, int]] = {}
        self._sizes_due = float("-inf")
        self._topics: Mapping[str, TopicInfo] = {}
        self._listed_at = float("-inf")
        self._changes = 0
        self._large = False
        self.book = GrowthBook()
        self.sizes: Mapping[TopicPartition, int] = {}
        self.gone: set[str] = set()

    def saw(self, report: TopicReport) -> None:
        """Takes in where a topic's partitions begin, which its looks don't ask."""
        self.book.of(report.topic.name).firsts = report.firsts

    async def listed(self) -> Mapping[str, TopicInfo]:
        """All topics, for a page; of a large cluster those of a moment ago.

        Raises:
            ClientError, KafkaError: the cluster doesn't answer, or refuses.
        """
        return await self._list(PAGE_LIST_S)

    def changed(self) -> None:
        """A topic was changed by this console: the next page has it."""
        self._changes += 1
        self._listed_at = float("-inf")

    async def _list(self, oldest_s: float, shown: Collection[str] = ()) -> Mapping[str, TopicInfo]:
        """All topics; of a large cluster those of so long ago at most, unless an open page has another one."""
        loop = asyncio.get_running_loop()
        old = not self._large or loop.time() >= self._listed_at + oldest_s
        if old or any(name not in self._topics for name in shown):
            changes, asked_at = self._changes, loop.time()
            self._topics = await self._reader.topics()
            self._large = sum(len(each.partitions) for each in self._topics.values()) > LARGE
            # A change may be made while it is told, and not be in it.
            self._listed_at = asked_at if changes == self._changes else float("-inf")
        return self._topics

    async def _look(self) -> str:
        shown = self.shown()
        topics = await self._list(LIST_S, shown)
        self.gone = shown - topics.keys()
        due = self.book.due({name: len(each.partitions) for name, each in topics.items()}, shown, self._batch)
        found = await self._reader.ends([topics[name] for name in due])
        loop = asyncio.get_running_loop()
        sizes = None
        if loop.time() >= self._sizes_due:
            self._sizes_due = loop.time() + SIZES_S
            sizes = await self._reader.sizes()
            self._sizes_due = loop.time() + SIZES_S
        now = loop.time()
        ends = {}
        for name in due:
            known = self._ends.get(name, {})
            numbers = topics[name].partitions
            news = {at: end for at in numbers if (end := found.get(TopicPartition(name, at))) is not None}
            if news:
                self._ends[name] = {at: news.get(at, known.get(at, 0)) for at in numbers}
                ends[name] = sum(self._ends[name].values())
        self._ends = {name: each for name, each in self._ends.items() if name in topics}
        if sizes is not None:
            self.sizes = sizes
        by_topic = None if sizes is None else sum_by_topic((at.topic, each) for at, each in sizes.items())
        self.book.looked(now, ends, by_topic, topics.keys(), due=due, wanted=shown)
        return ""
