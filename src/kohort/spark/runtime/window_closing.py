"""Which windows of a store close, and which are forgotten, as stream time goes on: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS: Final = -62_135_596_800_000  # the year 1
_LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999
_WINDOW: Final = b'{"window":"'
_AFTER_ALL: Final = b'{"window":#'  # no key of a window comes after this


@dataclass(frozen=True)
class Windows:
    """How long the windows of an aggregate are, and stay. All in ms.

    Attributes:
        size: from a window's start to its end.
        grace: after its end, how long it still takes records; None: for ever.
        retention: after its start, how long it is kept; None: for ever.
    """

    size: int
    grace: int | None = None
    retention: int | None = None

    def closing(self, before: int | None, after: int | None) -> tuple[bytes, bytes] | None:
        """The keys (from, up to) of windows that close as stream time goes from `before` to `after`; None if none can.

        A window closes when stream time has reached its end and the grace after it: from then on its records are late.
        """
        return None if self.grace is None else _between(self.size + self.grace, before, after)

    def expiring(self, before: int | None, after: int | None) -> tuple[bytes, bytes] | None:
        """The keys of windows that are forgotten, likewise. A window is never forgotten before it is closed."""
        if self.grace is None or self.retention is None:
            return None
        return _between(max(self.retention, self.size + self.grace), before, after)


def _between(age: int, before: int | None, after: int | None) -> tuple[bytes, bytes] | None:
    if after is None or (before is not None and after <= before):
        return None
    first = _WINDOW if before is None else key_bound(before - age + 1)
    return first, key_bound(after - age + 1)


def key_bound(start: int) -> bytes:
    """Keys of windows that start at this time (ms) or later come after this, those of earlier ones before it."""
    if start <= _FIRST_MS:
        return _WINDOW
    if start > _LAST_MS:
        return _AFTER_ALL
    return _WINDOW + window_text(start).encode()


def window_text(start: int) -> str:
    """A window's start (ms) as keys have it: 2013-01-01T05:00:00.000Z."""
    at = _EPOCH + timedelta(milliseconds=start)
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def later(one: int | None, other: int | None) -> int | None:
    """The later of two times, where either may not be known."""
    return one if other is None else other if one is None else max(one, other)
