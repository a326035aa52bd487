"""Heartbeats that are held, over sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.heartbeat_wishes import Grant, Wishes, grant_of
from tests.broker.handlers.conftest import Rules, asker
from tests.broker.raw import RawClient
from tests.broker.streams.members import Crowd, Request, Response, StreamsClient, reconcile, stateless
from tests.waiting import until

Run = Callable[..., None]

INTERVAL = 15_000
"""In ms, the most that a broker allows: what is told at once comes long before, on a busy machine, too."""
PATIENT = f"group.streams.heartbeat.interval.ms={INTERVAL}"
TIMEOUT = 1_000


def held(crowd: Crowd) -> int:
    return sum(shard.streams.held_heartbeats.delayed for shard in crowd.server.broker.groups.active())


def asking(member: StreamsClient, max_wait_ms: int = 60_000) -> Request:
    request = Request(
        group_id=member.group,
        member_id=member.member_id,
        member_epoch=member.epoch,
        endpoint_information_epoch=member.endpoint_epoch,
    )
    request.unknown_tags = Wishes(TIMEOUT, max_wait_ms).tags()
    return request


def ask(member: StreamsClient, client: RawClient, max_wait_ms: int = 60_000) -> asyncio.Task[Response]:
    """Asks for news, on a connection of its own."""
    return asyncio.create_task(client.call(asking(member, max_wait_ms)))


async def answer(asked: asyncio.Task[Response]) -> Grant:
    response = await asked
    assert not response.error_code and response.active_tasks is None
    granted = grant_of(response.unknown_tags)
    assert granted is not None
    return granted


async def waiting(crowd: Crowd) -> tuple[StreamsClient, asyncio.Task[Response], RawClient]:
    """A member whose heartbeat is held."""
    crowd.topics.create("words", 4)
    member, client = await crowd.joined(stateless("words")), await crowd.client()
    await reconcile(member)
    asked = ask(member, client)
    await until(lambda: held(crowd) == 1)
    return member, asked, client


def test_a_member_hears_of_its_new_assignment_at_once(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member, asked, _ = await waiting(crowd)
        assert not (await member.beat()).error_code  # the other connection is free
        assert not asked.done()

        began = time.monotonic()
        await crowd.joined(stateless("words"))

        assert await answer(asked) == (TIMEOUT, INTERVAL, True)
        assert time.monotonic() - began < INTERVAL / 1000 - 1
        await member.beat()
        assert len(member.active) == 2

    with_crowd(test, PATIENT)


def test_without_news_it_waits_for_as_long_as_it_may(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        member, client = await crowd.joined(stateless("words")), await crowd.client()
        await reconcile(member)

        began = time.monotonic()
        assert await answer(ask(member, client, 200)) == (TIMEOUT, INTERVAL, False)
        assert time.monotonic() - began >= 0.19

    with_crowd(test, PATIENT)


def test_who_goes_leaves_nothing_behind(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        _, asked, client = await waiting(crowd)
        asked.cancel()
        await client.close()
        await until(lambda: held(crowd) == 0)

    with_crowd(test)


def test_for_who_has_gone_before_none_is_held(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        member = await crowd.joined(stateless("words"))
        await reconcile(member)
        asker(crowd.server.broker)(asking(member), gone=True)
        assert held(crowd) == 0

    with_crowd(test)


def test_a_connection_with_one_is_not_idle(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member, asked, _ = await waiting(crowd)
        assert await member.client.closed()
        assert not asked.done()

    with_crowd(test, "connections.max.idle.ms=1000")


def test_a_server_that_stops_does_not_wait_for_them(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        _, asked, _ = await waiting(crowd)
        began = time.monotonic()
        await crowd.server.stop()
        assert time.monotonic() - began < INTERVAL / 1000 - 1
        await asyncio.wait([asked])
        assert asked.exception() is not None

    with_crowd(test, PATIENT)


def test_who_may_not_read_the_group_hears_nothing(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.member(stateless("words"))
        response = await ask(member, await crowd.client())
        assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    with_crowd(test, authorizer=Rules((Operation.READ, ResourceType.GROUP, "app")))
