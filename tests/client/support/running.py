"""How tests of the client run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run", "until"]

T = TypeVar("T")


def run(test: Coroutine[Any, Any, T], *, timeout_s: float = 20.0) -> T:
    """Run a test in an event loop of its own; nothing it started may be left when it ends."""

    async def whole() -> T:
        async with asyncio.timeout(timeout_s):
            result = await test
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


async def until(condition: Callable[[], object], *, timeout_s: float = 10.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.002)
