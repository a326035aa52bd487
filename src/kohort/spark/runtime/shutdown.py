"""How any thread ends a run."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator


class Shutdown:
    """A run's end, to be asked for from any thread, as often as one likes: before the run has come to its loop, too."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may ask in the midst of it
        self._end: Callable[[], object] | None = None
        self.asked = False

    def ask(self) -> None:
        """End the run, without waiting for that."""
        with self._lock:
            self.asked = True
            self.end()

    def end(self) -> None:
        """End the run that is in its loop, if there is one, though nobody has asked: to begin another."""
        with self._lock:
            if self._end is not None:
                self._end()

    @contextlib.contextmanager
    def ends(self, end: Callable[[], object]) -> Iterator[None]:
        """Meanwhile `end` is called once that is asked for, or was: in the loop that this is called in."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._end = functools.partial(loop.call_soon_threadsafe, end)
            if self.asked:
                self._end()
        try:
            yield
        finally:
            with self._lock:
                self._end = None
