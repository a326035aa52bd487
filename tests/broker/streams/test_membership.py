"""Members join, share the tasks, and leave."""

from __future__ import annotations

import asyncio

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from tests.broker.conftest import Run
from tests.broker.raw import RawClient
from tests.broker.streams.members import (
    PATIENCE,
    Crowd,
    reconcile,
    stateless,
    statuses,
)

ALL = {("0", partition) for partition in range(4)}


@pytest.mark.parametrize("durable", [False, True])
def test_members_share_the_tasks(with_crowd: Run, durable: bool) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        first = await crowd.joined(stateless("words"))
        second = await crowd.joined(stateless("words"))
        assert not second.active  # the first has them until it says that it has given them up

        await reconcile(first, second)

        assert first.active | second.active == ALL
        assert (len(first.active), len(second.active)) == (2, 2)

    with_crowd(test, durable=durable)


def test_who_leaves_hands_over_its_tasks(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        first = await crowd.joined(stateless("words"))
        second = await crowd.joined(stateless("words"))
        await reconcile(first, second)

        left = await first.leave()
        await reconcile(second)

        assert (left.error_code, left.member_epoch) == (0, -1)
        assert second.active == ALL

    with_crowd(test)


def test_who_is_silent_is_expelled(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        first = await crowd.joined(stateless("words"))
        second = await crowd.joined(stateless("words"))

        async with asyncio.timeout(PATIENCE):
            while second.active != ALL:
                if (await second.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    await second.join()  # on a busy machine, it may have been silent for too long itself
                await asyncio.sleep(0.01)

        assert (await first.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    with_crowd(
        test,
        "group.streams.session.timeout.ms=300",
        "group.streams.min.session.timeout.ms=300",
        "group.streams.heartbeat.interval.ms=100",
        "group.streams.min.heartbeat.interval.ms=100",
    )


def test_a_group_waits_for_members_before_it_gives_out_tasks(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        first, second = await crowd.member(stateless("words")), await crowd.member(stateless("words"))
        delayed = await first.join()
        await second.join()
        assert (list(statuses(delayed)), first.active) == ([5], set())

        await reconcile(first, second)

        assert (len(first.active), len(second.active), first.epoch) == (2, 2, second.epoch)

    with_crowd(test, "group.streams.initial.rebalance.delay.ms=100")


def test_a_task_has_one_copy_a_process(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        members = [await crowd.joined(stateless("words"), process=process) for process in ("one", "one", "other")]
        await reconcile(*members)

        assert sorted(task for member in members for task in member.active) == [("0", 0), ("0", 1)]

    with_crowd(test)


def test_one_member_stops_the_application(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        first = await crowd.joined(stateless("words"))
        second = await crowd.joined(stateless("words"))
        await reconcile(first, second)

        assert 4 in statuses(await first.beat(shutdown_application=True))
        assert 4 in statuses(await second.beat())

    with_crowd(test)


def test_an_empty_classic_group_becomes_a_streams_group(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        client = await crowd.client()
        await leave_classic(client, await join_classic(client))

        member = await crowd.joined(stateless("words"))

        assert member.active == ALL

    with_crowd(test)


def test_a_classic_group_with_members_stays_one(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        client = await crowd.client()
        await join_classic(client)

        response = await (await crowd.member(stateless("words"))).join()

        assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    with_crowd(test)


def test_an_empty_streams_group_becomes_a_classic_group(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)
        member = await crowd.joined(stateless("words"))
        client = await crowd.client()
        assert (await client.call(classic_join(), 3)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        await member.leave()

        assert await join_classic(client)

    with_crowd(test)


def classic_join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="app",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"m")],
    )


async def join_classic(client: RawClient) -> str:
    """Let a member join the group as a classic one; its id."""
    while (response := await client.call(classic_join(), 3)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
        pass
    assert response.error_code == 0
    return str(response.member_id)


async def leave_classic(client: RawClient, member_id: str) -> None:
    response = await client.call(LeaveGroupRequest(group_id="app", member_id=member_id), 2)
    assert response.error_code == 0
