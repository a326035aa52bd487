"""Tells of connections that are refused, without letting strangers fill the log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

_PAUSE_S: Final = 10.0

_log = logging.getLogger(__name__)


class Strangers:
    """Logs the first at once, and after that one line in ten seconds, with how many there were in between.

    Args:
        clock: seconds, of any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: float | None = None
        self._untold = 0

    def tell(self, peer: object, why: object) -> None:
        now = self._clock()
        with self._lock:
            if self._told is not None and now < self._told + _PAUSE_S:
                self._untold += 1
                return
            self._told, untold, self._untold = now, self._untold, 0
        _log.warning(
            "a connection of %s to the port for executors was refused: %s%s",
            peer,
            why,
            f" (and {untold} more since the last such line)" if untold else "",
        )
