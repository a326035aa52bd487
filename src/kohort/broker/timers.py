"""The timing wheel on the event loop: one timer of the loop drives all timers of the wheel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kohort.coordinator.timing_wheel import TimingWheel

log = logging.getLogger("kohort.broker.timers")

_NEVER: Final = 2**63


class EventLoopTimingWheel(TimingWheel):
    """A timing wheel that the event loop advances once it is started.

    Args:
        clock: ms since 1970.

    Attributes:
        on_advanced: called whenever timers have run.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock())
        self._clock = clock
        self.on_advanced: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arm()

    def stop(self) -> None:
        self._loop = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def catch_up(self) -> None:
        """Runs the timers that are due by a clock that was moved."""
        if self._handle is not None:
            self._handle.cancel()
        self._wake()

    def _earlier(self) -> None:
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        due = self.next_deadline()
        if self._loop is None:
            self._alarm = 0
            return
        if due is None:
            self._alarm = _NEVER
            return
        self._alarm = due
        # At least 1 ms: requests that have arrived are read first; a timer may depend on them.
        self._handle = self._loop.call_later(max(1, due - self._clock()) / 1000, self._wake)

    def _wake(self) -> None:
        self._handle = None
        self._alarm = 0  # a timer added now needs no alarm: `_arm` runs after all timers
        while True:
            try:
                self.advance(self._clock())
                break
            except Exception:
                log.exception("a timer failed")
        for listener in self.on_advanced:
            try:
                listener()
            except Exception:
                log.exception("the steps of timers could not be performed")
        self._arm()
