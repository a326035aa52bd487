"""Time limits that hold in every task, one that is being cancelled included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

__all__ = ["time_limit", "time_limit_at"]


@asynccontextmanager
async def time_limit_at(when: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Cancel the block at a time of the event loop's clock, in seconds, and raise TimeoutError then; None: never.

    `asyncio.timeout_at` does so, too, but in Python 3.11.0 to 3.11.2 it raises CancelledError where the task has a
    cancellation outstanding from before: while it cleans up after having been cancelled, or ever after a `TaskGroup`
    in it has failed. As in later versions, only a cancellation that came meanwhile goes before the time limit here.

    Raises:
        TimeoutError: the time came before the block's end.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    limit = asyncio.timeout_at(when)  # noqa: TID251  # what others are told to use this for
    try:
        async with limit:
            yield limit
    except asyncio.CancelledError as cancelled:
        if limit.expired() and task.cancelling() <= before:
            raise TimeoutError from cancelled
        raise


def time_limit(seconds: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Cancel the block after so many seconds, as `time_limit_at`."""
    return time_limit_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)
