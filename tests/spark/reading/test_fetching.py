"""What a range does with answers that a single broker hardly gives: gaps at the end, quotas, leaders that move."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.spark.reading import Range, RangeError
from kohort.spark.reading.fetching import _RangeFetch

Read = FetchResponse.TopicResponse.Partition

EMPTY = Read(partition_index=0, high_watermark=10, last_stable_offset=10, log_start_offset=0, records=b"")
BEHIND = Read(partition_index=0, high_watermark=7, last_stable_offset=7, log_start_offset=0, records=b"")
MOVED = Read(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
FENCED = Read(partition_index=0, error_code=ErrorCode.FENCED_LEADER_EPOCH, high_watermark=-1)


async def fetch_from(answers: list[Any], patience_ms: float = 5000) -> int:
    """Fetch offsets 5 to 10 from somebody who answers so; how many answers it took. The last one comes again."""
    asked = 0
    pieces: asyncio.Queue[Any] = asyncio.Queue()
    cluster = Cluster("127.0.0.1:1")
    fetch = _RangeFetch(cluster, Range("t", 0, 5, 10), True, patience_ms, pieces)

    async def answer() -> Any:
        nonlocal asked
        asked += 1
        return answers[min(asked, len(answers)) - 1]

    fetch._ask = answer  # type: ignore[method-assign]
    try:
        await fetch.run()
        assert pieces.get_nowait() is None
    finally:
        await cluster.close()
    return asked


def test_a_gap_that_compaction_left_at_the_end_ends_the_range() -> None:
    assert asyncio.run(fetch_from([EMPTY])) == 2


def test_no_leader_is_asked_which_follower_is_near() -> None:
    asked = []

    class AskedError(Exception):
        pass

    async def send(request: FetchRequest, *_: object, **__: object) -> None:
        asked.append(request)
        raise AskedError

    async def connection(*_: object) -> SimpleNamespace:
        return SimpleNamespace(version=lambda _: 17, send=send)

    async def ask() -> None:
        cluster = Cluster(ClientConfig(bootstrap_servers="127.0.0.1:1", client_rack="a"))
        info: Any = SimpleNamespace(
            leader=lambda _: Broker(1, "h", 1, None),
            leader_epoch=lambda _: 3,
            topics={"t": SimpleNamespace(topic_id=UUID(int=1))},
        )
        fake: Any = SimpleNamespace(info=info, connection=connection, config=cluster.config)
        await _RangeFetch(fake, Range("t", 0, 5, 10), True, 1000, asyncio.Queue())._ask()

    with pytest.raises(AskedError):
        asyncio.run(ask())
    # A leader that knows of our rack may answer without records, and name a follower to ask.
    assert asked[0].rack_id == ""


def test_leaders_that_move_are_followed() -> None:
    assert asyncio.run(fetch_from([MOVED, FENCED, BEHIND, EMPTY])) == 5


def test_a_leader_that_never_catches_up_is_given_up() -> None:
    with pytest.raises(RangeError, match=r"no progress within 0\.3 s: the last stable offset is 7"):
        asyncio.run(fetch_from([BEHIND], 300))
    with pytest.raises(RangeError, match="NOT_LEADER_OR_FOLLOWER"):
        asyncio.run(fetch_from([MOVED], 300))
