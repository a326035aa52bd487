"""Which answers count: those of the broker that a partition's acknowledgements were sent to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.client.sharing.share_fetchers import ShareFetchers
from kohort.client.sharing.shared_partitions import AcknowledgementResult, SharedPartition, SharedPartitions
from kohort.client.types import TopicPartition
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from kohort.protocol.messages.share_fetch import ShareFetchResponse

KEY = UUID(int=7), 0
AT = TopicPartition("t", 0)


def fetchers(partitions: SharedPartitions) -> ShareFetchers:
    cluster: Any = SimpleNamespace(on_change=lambda callback: lambda: None)
    delivery: Any = SimpleNamespace(waiting=True, wake=lambda: None)
    unused: Any = None
    return ShareFetchers(cluster, unused, partitions, delivery, unused, unused)


@pytest.mark.parametrize("lacks_it", [False, True])
@pytest.mark.parametrize("fetch", [False, True])
def test_a_former_leaders_answer_says_nothing_of_what_the_next_one_was_told(fetch: bool, lacks_it: bool) -> None:
    async def scenario() -> None:
        results: list[AcknowledgementResult] = []
        partitions = SharedPartitions(results.append)
        moved = partitions.by_key[KEY] = SharedPartition(AT, KEY, node_id=2)
        moved.book.acquire(0, 9, 2**60)
        moved.book.acknowledge(0, 9, AcknowledgeType.ACCEPT, 0)
        moved.book.take(0)
        subject = fetchers(partitions)
        if fetch:
            found = ShareFetchResponse.TopicResponse(
                topic_id=KEY[0], partitions=[ShareFetchResponse.TopicResponse.Partition(partition_index=0)]
            )
            subject.fetched(1, [moved], ShareFetchResponse(responses=[] if lacks_it else [found]))
        else:
            told = ShareAcknowledgeResponse.TopicResponse(
                topic_id=KEY[0], partitions=[ShareAcknowledgeResponse.TopicResponse.Partition(partition_index=0)]
            )
            subject.acknowledged(1, [moved], ShareAcknowledgeResponse(responses=[] if lacks_it else [told]))
        assert moved.book.in_flight and not results

    asyncio.run(scenario())
