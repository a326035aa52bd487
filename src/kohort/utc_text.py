"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(ms: int) -> str:
    """A time in ms since 1970 to the second, "2026-01-31T08:00:00Z"; "" for one that no calendar has."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""
