"""Asking for news over a connection of its own: what is sent, for how long it waits, and when it is not sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from kohort.client.cluster import Cluster
from kohort.client.streams_member_news import StreamsMemberNews
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests.client.streams.test_membership_manager import INTERVAL, Scripted
from tests.client.streams.test_news_watch import HOLDS, joined
from tests.waiting import run, until

REQUEST_TIMEOUT_MS = 700


class Coordinator:
    """A cluster whose only connection answers that there is no news."""

    def __init__(self, connecting: Callable[[], object] = lambda: None) -> None:
        self.config = SimpleNamespace(request_timeout_ms=REQUEST_TIMEOUT_MS)
        self.connecting = connecting
        self.connected = 0
        self.timeouts: list[float | None] = []

    async def coordinator_connection(self, *_: Any) -> Coordinator:
        self.connecting()
        self.connected += 1
        return self

    def version(self, _: object) -> int:
        return 1

    async def ask(
        self, request: StreamsGroupHeartbeatRequest, response: type[StreamsGroupHeartbeatResponse], *,
        version: int, timeout_ms: float | None,
    ) -> StreamsGroupHeartbeatResponse:  # fmt: skip
        self.timeouts.append(timeout_ms)
        await asyncio.sleep(0)
        return response(member_id=request.member_id, member_epoch=request.member_epoch, **HOLDS)


async def asks(scripted: Scripted, coordinator: Coordinator) -> None:
    """Asks for news once, if the member still wants to."""
    changed = asyncio.Event()
    news = StreamsMemberNews(
        cast(Cluster, coordinator), scripted.member, now_ms=lambda: scripted.now, changed=changed.set
    )
    task = asyncio.create_task(news.run())
    await until(changed.is_set)
    task.cancel()


def test_it_waits_for_an_answer_for_as_long_as_the_heartbeat_is_held_and_a_request_may_take() -> None:
    coordinator = Coordinator()
    run(asks(joined(), coordinator))
    assert set(coordinator.timeouts) == {REQUEST_TIMEOUT_MS + INTERVAL}


def test_a_member_that_leaves_while_it_connects_asks_for_nothing() -> None:
    scripted = joined()
    coordinator = Coordinator(lambda: scripted.member.quit(scripted.now))
    run(asks(scripted, coordinator))
    assert coordinator.connected == 1 and not coordinator.timeouts
