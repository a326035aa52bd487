"""What a group has left to read, of what its partitions are known to have."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.types import TopicPartition
from kohort.spark.runtime.group_lag import group_lag

ZERO, ONE, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)
BEHIND = PartitionLag(committed=3, end=10, lag=7)
NOTHING_COMMITTED = PartitionLag(committed=None, end=10, lag=None, first=5)
NO_END = PartitionLag(committed=3, end=None, lag=None)


def left(lags: dict[TopicPartition, PartitionLag], *, pause_s: float = 0, timeout_ms: int = 60_000) -> int | None:
    """What is left of a topic t with two partitions; each answer comes after a pause."""

    async def describe(*names: str, **options: object) -> dict[str, Any]:
        await asyncio.sleep(pause_s)
        return {"t": SimpleNamespace(partitions={0: None, 1: None})}

    async def lag(*group: str, **options: object) -> dict[TopicPartition, PartitionLag]:
        await asyncio.sleep(pause_s)
        return lags

    admin: Any = SimpleNamespace(topics=SimpleNamespace(describe=describe), group_offsets=SimpleNamespace(lag=lag))
    return asyncio.run(group_lag(admin, "app", ["t"], timeout_ms=timeout_ms))


@pytest.mark.parametrize(
    ("lags", "records"),
    [
        ({ZERO: BEHIND, ONE: BEHIND}, 14),
        ({ZERO: BEHIND, ONE: NOTHING_COMMITTED}, 12),
        ({ZERO: BEHIND, ONE: NO_END}, None),
        ({ZERO: BEHIND, ONE: PartitionLag(committed=None, end=None, lag=None)}, None),
        ({ZERO: BEHIND, ONE: BEHIND, GONE: NO_END}, 14),
    ],
)
def test_what_is_not_known_is_not_nothing(lags: dict[TopicPartition, PartitionLag], records: int | None) -> None:
    assert left(lags) == records


def test_all_requests_share_one_limit() -> None:
    with pytest.raises(TimeoutError):
        left({}, pause_s=3600, timeout_ms=10)
