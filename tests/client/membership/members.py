"""Members for tests: a connector with a delegate that records its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import Any

from kohort.client.cluster import Cluster
from kohort.client.coordinator_connector import CoordinatorConnector, MembershipSettings, Subscription
from kohort.client.types import TopicPartition
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

__all__ = ["Recorder", "create_topics", "joined", "member", "partitions"]


def partitions(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


class Recorder:
    """A delegate that only records calls, and fails the test on invalid ones."""

    def __init__(self, *topics: str, pattern: str | None = None) -> None:
        self.subscription = Subscription(frozenset(topics), pattern)
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.calls: list[str] = []
        self.errors: list[Exception] = []
        self.suspended = False
        self.polled_at: int | None = None
        self.revoking: asyncio.Event | None = None
        self.connector: CoordinatorConnector

    async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
        assert self.assigned >= partitions
        self.calls.append("lose" if lost else "revoke")
        if self.revoking is not None and not lost:
            await self.revoking.wait()
        self.assigned -= partitions

    async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
        self.calls.append("assign")
        assert not added & self.assigned
        self.assigned |= added
        assert self.assigned == assigned

    def suspend(self) -> None:
        assert not self.suspended
        self.suspended = True

    def resume(self) -> None:
        assert self.suspended
        self.suspended = False

    def failed(self, error: Exception) -> None:
        self.errors.append(error)

    def last_poll(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) if self.polled_at is None else self.polled_at


@asynccontextmanager
async def member(
    servers: str,
    *topics: str,
    pattern: str | None = None,
    group: str = "g",
    recorder: Recorder | None = None,
    **settings: Any,
) -> AsyncIterator[Recorder]:
    recorder = recorder or Recorder(*topics, pattern=pattern)
    chosen = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100, **settings}
    async with Cluster(servers) as cluster:
        recorder.connector = CoordinatorConnector(cluster, MembershipSettings(group_id=group, **chosen), recorder)
        await recorder.connector.start()
        try:
            yield recorder
        finally:
            await recorder.connector.close(timeout_ms=2_000)


def joined(*members: Recorder, topic: str = "t", count: int = 4) -> bool:
    """Whether the members share a topic's partitions, each once, and all have some."""
    each = [partition for one in members for partition in one.assigned if partition.topic == topic]
    return sorted(each) == sorted(partitions(topic, *range(count))) and all(one.assigned for one in members)


async def create_topics(servers: str, **topics: int) -> None:
    async with Cluster(servers) as cluster:
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=1)
                for name, count in topics.items()
            ]
        )
        answer = await cluster.ask_any(request, CreateTopicsResponse)
        assert not any(topic.error_code for topic in answer.topics)
