"""A time limit holds in a task that was cancelled, on every Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kohort.client.time_limit import time_limit, time_limit_at
from tests.waiting import run

from .support.older_python import time_out_as_older_python


@pytest.fixture(params=[False, True], ids=["this Python", "Python 3.11.2"], autouse=True)
def older(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        time_out_as_older_python(monkeypatch)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def while_cleaning_up(work: Callable[[], Awaitable[None]]) -> None:
    """Have work done by a task that was cancelled; raises what it raises."""

    async def cancelled() -> None:
        try:
            await for_ever()
        finally:
            await work()

    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def limited() -> None:
    async with time_limit(0.001):
        await for_ever()


async def limited_by_a_deadline() -> None:
    async with time_limit_at(asyncio.get_running_loop().time() + 0.001):
        await for_ever()


@pytest.mark.parametrize("work", [limited, limited_by_a_deadline])
def test_what_takes_too_long_times_out(work: Callable[[], Awaitable[None]]) -> None:
    async def test() -> None:
        with pytest.raises(TimeoutError):
            await work()

    run(test())


@pytest.mark.parametrize("work", [limited, limited_by_a_deadline])
def test_a_limit_holds_while_a_cancelled_task_cleans_up(work: Callable[[], Awaitable[None]]) -> None:
    async def test() -> None:
        with pytest.raises(TimeoutError):
            await while_cleaning_up(work)

    run(test())


def test_a_limit_holds_after_a_task_group_has_failed() -> None:
    # Which leaves the task that waited for it with a cancellation outstanding, before Python 3.13.
    async def fail() -> None:
        raise ValueError

    async def test() -> None:
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(for_ever())
                group.create_task(fail())
        with pytest.raises(TimeoutError):
            await limited()

    run(test())


def test_limits_within_limits_end_inside_out() -> None:
    ended = []

    async def work() -> None:
        async with time_limit(0.05) as outer:
            try:
                await limited()
            except TimeoutError:
                ended.append("inner")
            assert not outer.expired()
            await for_ever()

    async def test() -> None:
        with pytest.raises(TimeoutError):
            await while_cleaning_up(work)
        assert ended == ["inner"]

    run(test())


def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def cancelled_meanwhile() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with time_limit(10):
            task.cancel()
            await for_ever()

    async def cancelled_when_the_time_is_over() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with time_limit(0.001) as limit:
            try:
                await for_ever()
            finally:
                assert limit.expired()
                task.cancel()
                await for_ever()

    async def test() -> None:
        for work in (cancelled_meanwhile, cancelled_when_the_time_is_over):
            with pytest.raises(asyncio.CancelledError):
                await while_cleaning_up(work)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(work())

    run(test())


def test_a_limit_holds_in_what_is_finalized_when_the_event_loop_is_closed() -> None:
    ended = []

    async def given_up() -> AsyncIterator[None]:
        try:
            yield
        finally:
            with pytest.raises(TimeoutError):
                await limited()
            ended.append(True)

    generator = given_up()

    async def test() -> None:
        await anext(generator)

    run(test())
    assert ended


def test_what_ends_in_time_is_left_alone_and_none_is_no_limit() -> None:
    async def work() -> None:
        async with time_limit(10) as limit:
            await asyncio.sleep(0)
        assert not limit.expired()
        async with time_limit(None) as limit:
            await asyncio.sleep(0.01)
        assert not limit.expired()
        with pytest.raises(KeyError):
            async with time_limit(10):
                raise KeyError

    async def test() -> None:
        await work()
        with pytest.raises(asyncio.CancelledError):
            await while_cleaning_up(work)

    run(test())
