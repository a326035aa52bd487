"""The timing wheel on an event loop: what fails in it is told, and stops nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kohort.broker.clock import now_ms
from kohort.broker.timers import EventLoopTimingWheel


def fail() -> None:
    raise RuntimeError("nobody has thought of that")


async def both(timers: list[Callable[[], object]], listeners: list[Callable[[], None]]) -> None:
    """Waits until a timer after `timers` has run, and a listener after `listeners` was called."""
    ran, heard = asyncio.Event(), asyncio.Event()
    wheel = EventLoopTimingWheel(now_ms)
    wheel.start(asyncio.get_running_loop())
    for function in (*timers, ran.set):
        wheel.add(now_ms() + 1, function)
    wheel.on_advanced += [*listeners, heard.set]
    await asyncio.wait_for(asyncio.gather(ran.wait(), heard.wait()), 30)
    wheel.stop()


def test_a_timer_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(both([fail], []))
    assert "a timer failed" in caplog.text


def test_a_coordinator_whose_steps_fail_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(both([], [fail]))
    assert "the steps of timers could not be performed" in caplog.text
