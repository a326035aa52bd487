"""Lag: records that a subtopology has left to read, and records that copies of stores lack.

`Overview` puts the lags of subtopologies together, `Metrics` exports both.
"""

from __future__ import annotations

from typing import NamedTuple


class RecordsLag(NamedTuple):
    """Records that a subtopology's tasks here have left to read, and when that was known (seconds since 1970)."""

    records: int
    at: float


class StandbyLag(NamedTuple):
    """Records of the changelog that a copy of a store's partition lacks; `role` is "standby" or "warm-up"."""

    store: str
    partition: int
    role: str
    records: int
