"""Why the changelog reader waits: one reason out of those of many changelogs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kohort.client.types import TopicPartition

log = logging.getLogger("kohort.spark.state.changelog_reader")

OnWait = Callable[[str | None], None]


class WaitReasons:
    """Why changelogs can't be read: passes on the oldest reason that holds, and None when there is none any more."""

    def __init__(self, on_wait: OnWait | None) -> None:
        self._on_wait = on_wait
        self._reasons: dict[TopicPartition | None, str] = {}
        self._last: str | None = None

    def set(self, reason: str | None, at: TopicPartition | None) -> None:
        """Sets or removes the reason of one changelog, or (`at` is None) of all."""
        if reason is None:
            self._reasons.pop(at, None)
        else:
            self._reasons[at] = reason
        first = next(iter(self._reasons.values()), None)
        if first != self._last:
            self._last = first
            if first is not None:
                log.info("the changelog reader waits: %s", first)
            if self._on_wait is not None:
                self._on_wait(first)
