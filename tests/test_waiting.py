"""What tests wait with has time limits."""

from __future__ import annotations

import asyncio

import pytest

from .waiting import eventually, run, until


async def never() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_condition_that_never_answers_ends_the_wait() -> None:
    with pytest.raises(AssertionError, match="no answer"):
        asyncio.run(asyncio.wait_for(until(never, timeout_s=0.01), 5))


def test_a_condition_that_never_holds_ends_the_wait() -> None:
    with pytest.raises(AssertionError, match="the end"):
        run(until(lambda: False, "the end", timeout_s=0.01))
    with pytest.raises(AssertionError, match="the end, last 0"):
        eventually(lambda: 0, within=0.01, what="the end")


def test_tasks_that_are_left_are_named() -> None:
    async def main() -> None:
        asyncio.get_running_loop().create_task(never(), name="left behind")

    with pytest.raises(AssertionError, match="left behind"):
        run(main())
