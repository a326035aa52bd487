"""Turns of the event loop: what takes longer than one is worked off in slices, and lets others in between.

One loop serves all clients, so nothing may keep it for long. What has used up its turn (a connection with many requests
in its buffer, a request with many items) goes on here: the works in the queue take turns, and what arrives meanwhile
comes first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeAlias, TypeVar

from kohort.broker.reply import Reply

log = logging.getLogger("kohort.broker.turns")

T = TypeVar("T")
R = TypeVar("R")

Slices: TypeAlias = Generator[Any, None, T]
"""Work in slices: it yields wherever others may be served in between, at least every millisecond, and returns its
result. Whatever it has read before a `yield` may have changed after it. It yields None to go on when it may, or a
`Reply` to go on when that is done."""

TURN_SECONDS: Final = 0.005
"""How long a connection's turn lasts, and a slice."""

LEAST_SECONDS: Final = 0.0005
"""How long a connection's turn lasts after others have used up a turn of the loop: small requests are done by then."""

clock: Final = time.perf_counter


def in_slices(function: Callable[[T], R], items: Iterable[T]) -> Slices[list[R]]:
    """Returns the results of a function for all items; each is a slice."""
    results = []
    for item in items:
        results.append(function(item))
        yield
    return results


class Turns:
    """Works that have used up their turn; each goes on for a slice at a time."""

    def __init__(self) -> None:
        self._works: deque[Callable[[float], bool]] = deque()
        self._scheduled = False
        self._closed = False
        self._left = TURN_SECONDS
        self._refilling = False

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, work: Callable[[float], bool]) -> None:
        """Lets a work go on, at once if others that began in this turn of the loop have left some time.

        It may be one of very many that an event has set free.
        """
        if self._left > 0:
            began = clock()
            done = work(began + self._left)
            self.used(clock() - began)
            if done:
                return
        self.add(work)

    @property
    def left(self) -> float:
        """How long the next connection's turn may last, in seconds.

        Very many connections may have something to read at once: they share one turn, but for `LEAST_SECONDS` each.
        """
        return max(self._left, LEAST_SECONDS)

    def used(self, seconds: float) -> None:
        """Counts what was used of this turn of the loop."""
        self._left -= seconds
        if not self._refilling:
            self._refilling = True
            asyncio.get_running_loop().call_soon(self._refill)

    def add(self, work: Callable[[float], bool]) -> None:
        """Lets a work go on.

        Args:
            work: is called with a time of `clock` to stop at, until it returns that it is done.
        """
        if self._closed:
            return
        self._works.append(work)
        self._schedule()

    def run(self, slices: Slices[T], done: Callable[[T], None]) -> None:
        """Works off what no request waits for by itself; as `begin`, the first of it at once if there is time left.

        Args:
            done: called with what the slices return.
        """

        def work(until: float) -> bool:
            while True:
                try:
                    awaited = next(slices)
                except StopIteration as stop:
                    result = stop.value
                    break
                if awaited is not None:
                    awaited.then(lambda _: self.add(work))
                    return True
                if clock() >= until:
                    return False
            done(result)
            return True

        self.begin(work)

    def close(self) -> None:
        """Drops all works, and those that come."""
        self._closed = True
        self._works.clear()

    def _refill(self) -> None:
        self._refilling = False
        self._left = TURN_SECONDS

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        """Gives one slice, to the work that has waited longest."""
        self._scheduled = False
        if not self._works:
            return
        work = self._works.popleft()
        try:
            if not work(clock() + TURN_SECONDS) and not self._closed:
                self._works.append(work)
        except Exception:  # the others must go on
            log.exception("a request in slices failed")
        if self._works:
            self._schedule()


class Line:
    """Lets in so many at a time; the others wait in the order they came.

    `enter` and `leave` are for whoever is called back, `wait` for work in slices.

    Large requests take many times their bytes while they are worked on. In line, they are no more than those bytes.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def enter(self, begin: Callable[[], None]) -> None:
        """Calls `begin` as soon as there is room."""
        if self._free:
            self._free -= 1
            begin()
        else:
            self._waiting.append(begin)

    def wait(self) -> Slices[None]:
        """Returns when there is room; `leave` is to be called then."""
        entered: Reply[None] = Reply()
        self.enter(lambda: entered(None))
        yield entered

    def leave(self) -> None:
        """Makes room: to be called once for each that was let in."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1

    def withdraw(self, begin: Callable[[], None]) -> None:
        """Takes one out of the line that waits."""
        if begin in self._waiting:
            self._waiting.remove(begin)
