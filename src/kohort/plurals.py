"""Numbers of things in sentences."""

from __future__ import annotations


def several(count: int, what: str, ending: str = "s") -> str:
    """A number of things, which take an s, or another ending, where they aren't one: "1 record", "1,200 records"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}{ending}"
