"""Why a connection is refused."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a connection is refused.

    Attributes:
        reason: for the log.
        held_ms: how long it isn't closed yet, nor read from, so that its client doesn't come again at once.
    """

    reason: str
    held_ms: int = 0
