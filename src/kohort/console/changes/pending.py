"""Plans that were shown and may be confirmed: each once, by who was shown it, and not for ever."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from kohort.console.changes.fields import Fields
from kohort.console.changes.plan import Plan

MOST: Final = 200
"""Plans that are kept; of more, the oldest is forgotten."""

FOR_S: Final = 900.0
"""How long a plan may be confirmed."""


class Shown(NamedTuple):
    """A plan, and the form that it was made for."""

    plan: Plan
    fields: Fields


class _Kept(NamedTuple):
    visitor: str
    until: float
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
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        token = secrets.token_urlsafe(32)
        self._kept[token] = _Kept(visitor, self._clock() + FOR_S, shown)
        return token

    def take(self, visitor: str, token: str) -> Shown | None:
        """The plan of a token, which is gone then; None if it is somebody else's, too old, or was taken."""
        kept = self._kept.get(token)
        if kept is None or kept.visitor != visitor:
            return None
        del self._kept[token]
        return kept.shown if self._clock() < kept.until else None
