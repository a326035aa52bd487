"""What an application does before its instance has begun, line by line: a start may take a minute."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence

from kohort.spark.monitoring.events import Listener, Listeners
from kohort.spark.monitoring.progress_log import write_line

log = logging.getLogger(__name__)


class StartLines:
    """Says it as `ProgressLog` goes on to.

    Args:
        name: the application's.
        shown: whether to show lines; else they are in the log alone.
        listeners: told it, too.
    """

    def __init__(self, name: str, *, shown: bool, listeners: Sequence[Listener] = ()) -> None:
        self._name, self._shown, self._listeners = name, shown, Listeners(listeners)

    def doing(self, text: str) -> None:
        """Says what is begun, which may take some time."""
        self._listeners.starting(text)
        if self._shown:
            self._write(text)
        else:
            log.info("%s: %s", self._name, text)

    def waiting(self, reason: str | None) -> None:
        """Says why nothing goes on, and with None that it does."""
        self._listeners.waiting(reason)
        if self._shown:
            self._write("going on" if reason is None else f"waiting: {reason}")
        elif reason is not None:
            log.warning("%s waits: %s", self._name, reason)

    def _write(self, text: str) -> None:
        write_line(logging.INFO, self._name, text, sys.stderr, time.time())
