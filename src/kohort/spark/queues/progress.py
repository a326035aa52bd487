"""What workers do: on a terminal in a line that changes, else in lines, every now and then."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from kohort.spark.monitoring.progress_log import write_line
from kohort.spark.queues.counts import QueueCounts

_TERMINAL_EVERY_S: Final = 0.25
_LOGGED_EVERY_S: Final = 10.0


class QueueProgress:
    """Shows the counts of an application's queues.

    Args:
        name: the application's.
        queues: the counts, whose `changed` this sets.
        file: where to; by default standard error.
        clock: in seconds.
    """

    def __init__(
        self,
        name: str,
        queues: Sequence[QueueCounts],
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._queues = queues
        self._file = sys.stderr if file is None else file
        self._clock = clock
        self._live = self._file.isatty()
        self._shown_at = float("-inf")
        self._shown = ""
        for each in queues:
            each.changed = self._changed

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
            write_line(logging.INFO, self._name, text, self._file, time.time())

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the console is closed
            self._file.write(text)
            self._file.flush()
