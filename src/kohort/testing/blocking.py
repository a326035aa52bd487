"""What a broker's users wait for, in a thread of its own: a test may have an event loop, but not the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

__all__ = ["PATIENCE_MS", "refuse_own_loop", "run_blocking"]

T = TypeVar("T")

PATIENCE_MS: Final = 30_000
"""How long to look for the broker, and to wait for each answer."""


def run_blocking(call: str, work: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop | None) -> T:
    """Runs it in another thread, and waits for it.

    Args:
        call: what the caller calls, such as "security.add_user".
        work: what is run.
        loop: the broker's, if it is in this process.

    Raises:
        RuntimeError: the caller is in the broker's loop, which couldn't answer.
    """
    refuse_own_loop(call, loop)
    thread = ThreadPoolExecutor(1)
    try:
        return thread.submit(lambda: asyncio.run(work())).result()
    finally:
        thread.shutdown(wait=False)  # who is interrupted doesn't wait


def refuse_own_loop(call: str, loop: asyncio.AbstractEventLoop | None) -> None:
    """Raises RuntimeError if the caller is in that event loop, and says what to write."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return
    if here is loop:
        name = call.rpartition(".")[2]
        raise RuntimeError(f"{name} would wait for its own event loop: await asyncio.to_thread({call}, …)")
