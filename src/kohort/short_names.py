"""Members' ids, as short as they can be told apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

_SHORT: Final = 12
"""The least number of characters shown of a member's id."""


def short_names(member_ids: Iterable[str]) -> dict[str, str]:
    """Ids cut to the length at which they differ, since each is on many lines; the members have them in full.

    Takes O(n log n) comparisons. Ids begin with a client's, which may be very long.
    """
    ids = sorted({*member_ids})
    # Sorted, those that have most in common are neighbours.
    length = max([_SHORT, *(1 + _in_common(*both) for both in pairwise(ids))])
    return {each: each if len(each) <= length + 1 else f"{each[:length]}…" for each in ids}


def _in_common(first: str, second: str) -> int:
    """How many characters they have in common at their beginnings."""
    return next((at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), len(first))
