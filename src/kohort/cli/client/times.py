"""Parsing of times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)(?: ago)?")
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
"""Units of durations, in ms."""


def parse_time(text: str, now: int) -> int:
    """Ms since 1970 of "2026-11-21T19:30" (UTC unless given), "90m" (before `now`) or "1700000000000" (ms).

    Raises:
        ValueError: none of these.
    """
    text = text.strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    if ago := _AGO.fullmatch(text):
        return now - int(float(ago[1]) * UNITS_MS[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r}: a time such as 2026-11-21T19:30, 90m (ago; or ms, s, h, d, w), or ms since 1970 is wanted"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
