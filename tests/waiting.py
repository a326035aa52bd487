"""Running coroutines and waiting for conditions, with time limits."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["eventually", "run", "until"]

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], *, timeout_s: float = 90.0) -> T:
    """Runs a coroutine in an event loop of its own; nothing it started may be left when it ends."""

    async def whole() -> T:
        async with asyncio.timeout(timeout_s):
            result = await coroutine
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        # Tasks that were cancelled or are done but for their last step may need a turn or two.
        for _ in range(10):
            left = {task for task in left if not task.done()}
            if not left:
                return result
            await asyncio.sleep(0)
        raise AssertionError(f"tasks are left: {left}")

    return asyncio.run(whole())


async def until(condition: Callable[[], object], what: str = "", *, timeout_s: float = 60.0) -> None:
    """Waits until a condition holds, which may be a coroutine function; other tasks go on meanwhile."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if inspect.isawaitable(value):
            left = asyncio.timeout(max(0, deadline - time.monotonic()))
            try:
                async with left:
                    value = await value
            except TimeoutError:
                assert not left.expired(), f"no answer within {timeout_s} s: {what or condition}"
                raise
        if value:
            return
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what or condition}"
        await asyncio.sleep(0.002)


def eventually(condition: Callable[[], T], *, within: float = 60.0, what: str = "") -> T:
    """The first true value of `condition`; an AssertionError with the last value after `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within} s: {what or condition}, last {value!r}"
        time.sleep(0.01)
    return value
