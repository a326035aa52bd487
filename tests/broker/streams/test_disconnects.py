"""Members of streams groups whose connection breaks, over sockets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.protocol.heartbeat_wishes import Wishes, grant_of
from tests.broker.streams.members import Crowd, StreamsClient, reconcile, stateless
from tests.waiting import until

Run = Callable[..., None]
TIMEOUT = 1_000
ASKS = {"unknown_tags": Wishes(TIMEOUT).tags()}
ALL = {("0", partition) for partition in range(4)}


async def two(crowd: Crowd) -> tuple[StreamsClient, StreamsClient]:
    """Two members that ask for a second."""
    crowd.topics.create("words", 4)
    members = await crowd.joined(stateless("words")), await crowd.joined(stateless("words"))
    await reconcile(*members)
    for member in members:
        response = await member.beat(**ASKS)
        granted = grant_of(response.unknown_tags)
        assert granted is not None and granted.disconnect_timeout_ms == TIMEOUT
    return members


def members_of(crowd: Crowd) -> set[str]:
    (group,) = (group for shard in crowd.server.broker.groups.active() if (group := shard.streams.get("app")))
    return set(group.members)


def let_time_pass(crowd: Crowd) -> None:
    """Runs the timers of the next three seconds, at their times."""
    now = crowd.server.now()
    for ms in range(0, 3_000, 5):
        crowd.server.broker.wheel.advance(now + ms)
    crowd.server.broker.groups.drain()


def test_the_tasks_of_a_member_that_is_gone_are_the_others(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        first, second = await two(crowd)
        await first.client.close()
        await until(lambda: members_of(crowd) == {second.member_id})
        while second.active != ALL:
            await second.beat()

    with_crowd(test)


def test_a_member_that_comes_back_in_time_is_in_its_group(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        first, second = await two(crowd)
        tasks, epoch = first.active, first.epoch
        for _ in range(3):
            await first.client.close()
            first.client = await crowd.client()
            assert not (await first.beat(**ASKS)).error_code
        let_time_pass(crowd)
        assert (first.active, first.epoch) == (tasks, epoch)
        assert members_of(crowd) == {first.member_id, second.member_id}

    with_crowd(test)


def test_a_connection_that_is_closed_as_idle_kills_nobody(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        first, second = await two(crowd)
        assert await first.client.closed() and await second.client.closed()
        let_time_pass(crowd)
        assert members_of(crowd) == {first.member_id, second.member_id}

    with_crowd(test, "connections.max.idle.ms=1000")


@pytest.mark.parametrize("broken", [False, True], ids=["connected", "one was just broken"])
def test_a_server_that_stops_kills_nobody(with_crowd: Run, broken: bool) -> None:
    async def test(crowd: Crowd) -> None:
        first, second = await two(crowd)
        if broken:
            await second.client.close()  # its time isn't over when the server stops
        await crowd.server.stop()
        let_time_pass(crowd)
        assert members_of(crowd) == {first.member_id, second.member_id}

    with_crowd(test)
