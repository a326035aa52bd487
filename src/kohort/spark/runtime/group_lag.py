"""What an application's group has left to read, all instances together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.admin import Admin


async def group_lag(admin: Admin, application_id: str, topics: Collection[str], *, timeout_ms: int) -> int:
    """Records that are committed and that the group has yet to read.

    Where it has committed nothing, all there are: an application that begins at the end commits that at once.

    Args:
        topics: all that it reads.
        timeout_ms: for each of the requests.

    Raises:
        KafkaError, ClientError: nobody could say, or not of all of them.
    """
    found = await admin.topics.describe(*topics, timeout_ms=timeout_ms)
    partitions = [TopicPartition(name, number) for name, info in found.items() for number in info.partitions]
    lags = await admin.group_offsets.lag(
        application_id, partitions=partitions, isolation_level="read_committed", timeout_ms=timeout_ms
    )
    return sum((each.lag or 0) + (each.uncommitted or 0) for each in lags.values())
