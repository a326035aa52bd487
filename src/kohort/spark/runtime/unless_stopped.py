"""Waiting that ends when the run is to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Does something that may take for ever, as to wait for the first broker; it is cancelled when `stop` is set.

    Returns:
        Whether it was done.

    Raises:
        Exception: whatever it raises.
    """
    doing = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        await doing
        return True
    finally:
        for task in (doing, stopping):
            task.cancel()
        await asyncio.wait([doing, stopping])
