"""An event loop whose time goes on by itself: where nothing is ready, it is what the next timer waits for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing would ever happen"
        self.skipped += max(timeout, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.skipped


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine; without threads and sockets, for which no time would be left."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)


async def at_once(function: Callable[..., T], *args: Any) -> T:
    """Runs a function in the event loop, where a worker would take a thread."""
    return function(*args)
