"""Members' ids, as short as they can be told apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final

_SHORT: Final = 12
"""The least number of characters shown of a member's id."""


def short_names(member_ids: Iterable[str]) -> dict[str, str]:
    """Ids cut to the length at which they differ, since each is on many lines; the members have them in full."""
    ids = {*member_ids}
    length = next(length for length in count(_SHORT) if len({each[:length] for each in ids}) == len(ids))
    return {each: each if len(each) <= length + 1 else f"{each[:length]}…" for each in ids}
