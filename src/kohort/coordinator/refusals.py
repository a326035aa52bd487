"""Who has been refused lately: a client tries again and again, and one line in ten seconds says why."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 300
"""Characters of a name in the log."""

_TOLD_MS: Final = 10_000
_TOLD: Final = 200
"""Refusals that are told in so many ms, whoever is refused: ids and names are the clients' own, and cost nothing."""


class Refusals:
    """Whom a line in the log has been about, in the last ten seconds."""

    def __init__(self) -> None:
        self._told: set[tuple[str, ...]] = set()
        self._told_until = 0

    def is_news(self, now: int, *who: str) -> bool:
        """Whether a line is to be written: the first about a group's client, or the first in ten seconds.

        Args:
            now: ms, of the same clock each time.
            who: what tells refusals apart, such as group and client.
        """
        if now >= self._told_until:
            self._told.clear()
            self._told_until = now + _TOLD_MS
        if who in self._told or len(self._told) >= _TOLD:
            return False
        self._told.add(who)
        return True
