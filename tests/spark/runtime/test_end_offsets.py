"""Where inputs end: many ask at a time."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from kohort.client.admin import Admin
from kohort.client.cluster import Cluster
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.testing.broker import Broker


def test_a_topic_that_is_gone_is_no_news_for_those_who_do_not_read_it(kohort_broker: Broker) -> None:
    async def scenario() -> None:
        servers, topic = kohort_broker.bootstrap_servers, f"there-{uuid.uuid4().hex[:8]}"
        async with Admin(servers) as admin, Cluster(servers) as cluster:
            await admin.topics.create(topic, partitions=1)
            ends = EndOffsets(cluster, timeout_ms=2_000)
            here, gone = TopicPartition(topic, 0), TopicPartition(f"{topic}-gone", 0)
            first, second, third = await asyncio.gather(
                ends.of([here]), ends.of([gone]), ends.of([here, gone]), return_exceptions=True
            )
            assert first == {here: 0}
            for error in (second, third):
                with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                    raise error  # type: ignore[misc]
            await ends.close()

    asyncio.run(scenario())


def test_partitions_that_were_added_are_known_at_once(kohort_broker: Broker) -> None:
    async def scenario() -> None:
        servers, topic = kohort_broker.bootstrap_servers, f"growing-{uuid.uuid4().hex[:8]}"
        async with Admin(servers) as admin, Cluster(servers) as cluster:
            await admin.topics.create(topic, partitions=1)
            ends = EndOffsets(cluster, timeout_ms=2_000)
            assert await ends.partitions([topic]) == {topic: 1}
            await admin.topics.add_partitions(topic, 3)
            assert await ends.partitions([topic]) == {topic: 3}
            await ends.close()

    asyncio.run(scenario())
