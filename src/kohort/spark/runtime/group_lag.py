"""What an application's group has left to read, all instances together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.admin import Admin


async def group_lag(admin: Admin, application_id: str, topics: Collection[str], *, timeout_ms: int) -> int | None:
    """Records that are committed and that the group has yet to read.

    Where it has committed nothing, all there are: an application that begins at the end commits that at once. None if
    that isn't known of a partition, as one that has no leader.

    Args:
        topics: all that it reads.
        timeout_ms: for all requests together.

    Raises:
        KafkaError, ClientError, TimeoutError: nobody could say.
    """
    async with time_limit(timeout_ms / 1000):
        found = await admin.topics.describe(*topics, timeout_ms=timeout_ms)
        read = {TopicPartition(name, number) for name, info in found.items() for number in info.partitions}
        lags = await admin.group_offsets.lag(
            application_id, partitions=read, isolation_level="read_committed", timeout_ms=timeout_ms
        )
    total = 0
    for partition, each in lags.items():
        left = each.uncommitted if each.lag is None else each.lag
        if left is not None:
            total += left
        elif partition in read:  # not one of a topic that is gone, whose offsets are still there
            return None
    return total
