"""Python 3.11.0 to 3.11.2, imitated in what it does otherwise than later versions."""

from __future__ import annotations

import asyncio

import pytest

__all__ = ["time_out_as_older_python"]


def time_out_as_older_python(patch: pytest.MonkeyPatch) -> None:
    """Have `asyncio.timeout` turn into TimeoutError only where the task has no other cancellation outstanding.

    Later versions allow for those that it had already when the block began, and remember how many these were.
    """
    enter = asyncio.Timeout.__aenter__

    async def entered(self: asyncio.Timeout) -> asyncio.Timeout:
        await enter(self)
        self._cancelling = 0  # type: ignore[attr-defined]
        return self

    patch.setattr(asyncio.Timeout, "__aenter__", entered)
