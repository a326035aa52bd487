"""Virtual time, and work that takes some of it: generators instead of coroutines, and nothing that waits for real."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

START = 1_700_000_000_000

Steps: TypeAlias = "Generator[int | Answer, Any, Any]"
"""Work: yields how long it waits (ms), or an answer that it waits for; returns what came of it."""


class Clock:
    """The time (ms since 1970), and what is to happen when."""

    def __init__(self) -> None:
        self.now = START
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._number = 0

    @property
    def elapsed(self) -> int:
        return self.now - START

    def after(self, ms: int, action: Callable[[], object]) -> None:
        """Do something later; of what is due at the same time, what was asked for first comes first."""
        self._number += 1
        heapq.heappush(self._events, (self.now + ms, self._number, action))

    def next_at(self) -> int | None:
        """When something happens next."""
        return self._events[0][0] if self._events else None

    def step(self) -> None:
        """Let the next thing happen."""
        self.now, _, action = heapq.heappop(self._events)
        action()


class Answer:
    """What somebody waits for: a value or an error, once."""

    __slots__ = ("_then", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: Exception | None = None
        self._then: Callable[[], object] | None = None

    def give(self, value: Any = None, error: Exception | None = None) -> None:
        """It is there, unless it was before: then this comes too late."""
        if not self.done:
            self.done, self.value, self.error = True, value, error
            if self._then is not None:
                self._then()

    def then(self, action: Callable[[], object]) -> None:
        """Do something when it is there."""
        if self.done:
            action()
        else:
            self._then = action


class Cancelled(Exception):  # noqa: N818  as asyncio calls it
    """The work is to end where it is."""


class JobError(Exception):
    """A Spark job failed."""
