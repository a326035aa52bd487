"""Between which times windows, and what sorts by time as text, can be."""

from __future__ import annotations

from typing import Final

FIRST_MS: Final = -62_135_596_800_000
"""The beginning of the year 1, in ms since 1970."""
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970: what is later is no time, but a number in another unit."""
