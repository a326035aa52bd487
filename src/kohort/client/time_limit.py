"""Time limits that work in every task, also in one that is being cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

__all__ = ["event_within", "time_limit", "time_limit_at"]


class time_limit_at:  # noqa: N801  # as asyncio.timeout_at
    """Cancels the block at a time of the event loop's clock, in seconds, and raises TimeoutError then; None: never.

        async with time_limit_at(deadline) as limit: ...

    `asyncio.timeout_at` does so, too, but in Python 3.11.0 to 3.11.2 it raises CancelledError where the task has a
    cancellation outstanding from before: while it cleans up after having been cancelled, or ever after a `TaskGroup`
    in it has failed. As in later versions, only a cancellation that came meanwhile goes before the time limit here.

    Raises:
        TimeoutError: the time came before the block's end.
    """

    def __init__(self, when: float | None) -> None:
        self._limit = asyncio.timeout_at(when)  # noqa: TID251  # what others are told to use this for

    async def __aenter__(self) -> asyncio.Timeout:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._before = task, task.cancelling()
        return await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, traceback)
        cancelled = isinstance(error, asyncio.CancelledError)
        if cancelled and self._limit.expired() and self._task.cancelling() <= self._before:
            raise TimeoutError from error


def time_limit(seconds: float | None) -> time_limit_at:
    """Cancels the block after so many seconds, as `time_limit_at`."""
    return time_limit_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)


async def event_within(event: asyncio.Event, timeout_ms: float | None) -> None:
    """Waits until an event is set, so many ms at most; None: however long it takes."""
    with contextlib.suppress(TimeoutError):
        async with time_limit(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()
