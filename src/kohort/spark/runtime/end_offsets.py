"""Where the inputs end, asked for by all subtopologies in one request; and how many partitions they have."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from kohort.client.cluster import Cluster
from kohort.client.consuming.log_offsets import LogOffsets
from kohort.client.errors import raise_for
from kohort.client.types import TopicPartition
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

_END, _BEGINNING = -1, -2

_Request = tuple[frozenset[TopicPartition], asyncio.Future[dict[TopicPartition, int]]]
"""Some partitions, and the future of their ends."""


class EndOffsets:
    """Asks where partitions end, for those who read what is committed: their last stable offsets.

    What is asked while a request is under way goes together in the next. Idle subtopologies ask at the same moments.

    Args:
        cluster: the cluster; it stays its owner's.
        pause_ms: how long idle subtopologies wait from one request to the next.
    """

    def __init__(self, cluster: Cluster, *, pause_ms: float = 50, timeout_ms: float = 10_000) -> None:
        self._cluster = cluster
        self._offsets = LogOffsets(cluster, committed=True)
        self._pause, self._timeout_ms = pause_ms / 1000, timeout_ms
        self._waiting: list[_Request] = []
        self._asking: asyncio.Task[None] | None = None

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of partitions, as they are now or later.

        Raises:
            KafkaError: a partition isn't there, or can't be read.
            ClientError: no answer in time.
        """
        if not partitions:
            return {}
        answer: asyncio.Future[dict[TopicPartition, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((frozenset(partitions), answer))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="kohort-ends")
        return await answer

    async def written(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks of partitions: how much is written, be that decided or not. Raises as `of`."""
        if not partitions:
            return {}
        found = await self._offsets.find(
            dict.fromkeys(sorted(partitions), _END), timeout_ms=self._timeout_ms, committed=False
        )
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of the first records there are. Raises as `of`."""
        found = await self._offsets.find(dict.fromkeys(partitions, _BEGINNING), timeout_ms=self._timeout_ms)
        return {partition: 0 if at is None else at.offset for partition, at in found.items()}

    async def partitions(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions topics have, as it is now or later.

        Raises:
            KafkaError: a topic isn't there.
            ClientError: no answer in time.
        """
        # By itself: the cluster's own questions keep a distance from each other.
        asked = [MetadataRequest.Topic(name=topic) for topic in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        answer = await self._cluster.ask_any(request, MetadataResponse, timeout_ms=self._timeout_ms)
        for each in answer.topics:
            raise_for(each.error_code, f"topic {each.name}")
        return {each.name or "": len(each.partitions) for each in answer.topics}

    async def known_partitions(self, topic: str) -> int:
        """How many partitions a topic had when its metadata was read last: for topics that don't get more.

        Raises:
            KafkaError, ClientError: it isn't there, or no broker says.
        """
        return len((await self._cluster.topic(topic)).partitions)

    async def pause(self) -> None:
        """Wait until idle subtopologies ask again: all at the same moment."""
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(self._pause - now % self._pause)

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        for _, answer in self._waiting:
            answer.cancel()

    async def _ask(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            try:
                await self._answer(asked)
            except BaseException:
                for _, answer in asked:
                    answer.cancel()
                raise

    async def _answer(self, asked: list[_Request]) -> None:
        wanted = frozenset().union(*(partitions for partitions, _ in asked))
        try:
            found = await self._offsets.find(dict.fromkeys(sorted(wanted), _END), timeout_ms=self._timeout_ms)
        except Exception as error:
            if len(asked) > 1:
                # One by one: a topic that is gone is no news for those who don't read it.
                await asyncio.gather(*(self._answer([each]) for each in asked))
                return
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for partitions, answer in asked:
            if not answer.done():
                answer.set_result({each: at.offset for each in partitions if (at := found[each]) is not None})
