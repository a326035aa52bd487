"""What is on pages that are open, and the looks that they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from kohort.client.time_limit import time_limit

__all__ = ["OpenPages"]


class OpenPages:
    """Who looks again and again is this, too: pages say what they show, and wait for news of it."""

    def __init__(self) -> None:
        self._shown: dict[object, Callable[[], Collection[str]]] = {}
        self._version = 0
        self._changed = asyncio.Condition()

    @contextmanager
    def showing(self, names: Callable[[], Collection[str]]) -> Iterator[None]:
        """Within, each look is at these, too."""
        key = object()
        self._shown[key] = names
        try:
            yield
        finally:
            del self._shown[key]

    def shown(self) -> set[str]:
        """What is on open pages."""
        return {name for names in self._shown.values() for name in names()}

    @property
    def version(self) -> int:
        """Counts the looks."""
        return self._version

    async def news(self, after: int, timeout_s: float) -> int:
        """Waits for a look after that version, at most so long; the version that there is then."""
        try:
            async with time_limit(timeout_s), self._changed:
                await self._changed.wait_for(lambda: self._version > after)
        except TimeoutError:
            pass
        return self._version

    async def tell(self) -> None:
        """A look is over: pages that wait are told."""
        async with self._changed:
            self._version += 1
            self._changed.notify_all()
