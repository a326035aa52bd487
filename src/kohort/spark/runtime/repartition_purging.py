"""Purges repartition topics: what is committed nobody reads again (Kafka Streams' repartition.purge.interval.ms)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from kohort.client.admin import Admin
from kohort.client.errors import ClientError, PartialFailureError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError

log = logging.getLogger(__name__)


async def purge_repartition_topics(
    admin: Admin,
    topics: Collection[str],
    positions: Callable[[], Mapping[TopicPartition, int]],
    interval_ms: int,
) -> None:
    """Delete the records that were read from some topics, again and again until this is cancelled.

    Args:
        positions: where its tasks read on, by what is committed.
        interval_ms: from one time to the next.
    """
    purged: dict[TopicPartition, int] = {}
    while True:
        read = {at: offset for at, offset in positions().items() if at.topic in topics and offset > purged.get(at, 0)}
        if read:
            try:
                await admin.topics.delete_records(read)
                purged |= read
            except (KafkaError, ClientError, PartialFailureError) as error:
                log.info("repartition topics can't be purged: %s", error)
        await asyncio.sleep(interval_ms / 1000)
