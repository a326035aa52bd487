"""Numbers of things in sentences."""

from __future__ import annotations


def several(count: int, what: str) -> str:
    """A number of things, which take an s where they aren't one: "1 record", "1,200 records"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
