"""What workers do, line by line: on a terminal in a line that changes, else on standard error every now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from kohort.spark.queues.counts import QueueCounts

_TERMINAL_EVERY_S: Final = 0.25
_LOGGED_EVERY_S: Final = 10.0


class QueueProgress:
    """Shows the counts of an application's queues.

    Args:
        name: the application's.
        file: where to; by default standard error.
        clock: in seconds.
    """

    def __init__(self, name: str, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._file = sys.stderr if file is None else file
        self._clock = clock
        self._live = self._file.isatty()
        self._queues: list[QueueCounts] = []
        self._shown_at = float("-inf")
        self._shown = ""

    def add(self, counts: QueueCounts) -> None:
        """Shows a queue, too."""
        self._queues.append(counts)
        counts.changed = lambda _: self._changed()

    def close(self) -> None:
        """Shows the last state."""
        self._show()
        if self._live:
            self._write("\n")

    def _changed(self) -> None:
        if self._clock() - self._shown_at >= (_TERMINAL_EVERY_S if self._live else _LOGGED_EVERY_S):
            self._show()

    def _show(self) -> None:
        self._shown_at = self._clock()
        text = "; ".join(f"queue {each.topic}: {each.line()}" for each in self._queues)
        if text == self._shown:
            return
        self._shown = text
        if self._live:
            self._write(f"\r\x1b[K{self._name}: {text}")
        else:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._write(f"{at} {self._name}: {text}\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the console is closed
            self._file.write(text)
            self._file.flush()
