"""Plans that were shown and may be confirmed: each once, by who was shown it, and not for ever."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from kohort.console.changes.fields import Fields
from kohort.console.changes.plan import Plan

MOST: Final = 200
"""Plans that are kept; of more, the oldest is forgotten."""

MOST_OF_ONE: Final = 10
"""Of one visitor."""

MOST_CHARACTERS: Final = 16 * 1024 * 1024
"""Of the forms and rows of all; of more, the oldest plans are forgotten."""

FOR_S: Final = 900.0
"""How long a plan may be confirmed."""


class Shown(NamedTuple):
    """A plan, and the form that it was made for."""

    plan: Plan
    fields: Fields


class _Kept(NamedTuple):
    visitor: str
    until: float
    size: int
    shown: Shown


class PendingPlans:
    """The plans that wait for somebody.

    Args:
        clock: seconds, which only go on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def keep(self, visitor: str, shown: Shown) -> str:
        """Keeps a plan; returns the token that confirms it."""
        now, size = self._clock(), _size(shown)
        self._kept = {token: each for token, each in self._kept.items() if now < each.until}
        own = [token for token, each in self._kept.items() if each.visitor == visitor]
        for token in own[: max(0, len(own) + 1 - MOST_OF_ONE)]:
            del self._kept[token]
        left = MOST_CHARACTERS - size - sum(each.size for each in self._kept.values())
        while self._kept and (len(self._kept) >= MOST or left < 0):
            left += self._kept.pop(next(iter(self._kept))).size
        token = secrets.token_urlsafe(32)
        self._kept[token] = _Kept(visitor, now + FOR_S, size, shown)
        return token

    def take(self, visitor: str, token: str) -> Shown | None:
        """The plan of a token, which is gone then; None if it is somebody else's, too old, or was taken."""
        kept = self._kept.get(token)
        if kept is None or kept.visitor != visitor:
            return None
        del self._kept[token]
        return kept.shown if self._clock() < kept.until else None


def _size(shown: Shown) -> int:
    """About how many characters it holds."""
    fields = sum(len(value) for values in shown.fields.values.values() for value in values)
    return fields + sum(len(each.text) for row in shown.plan.rows.values() for each in row)
