"""What somebody who mistyped a name may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LONGEST: Final = 249
"""Characters of names that are compared, as many as a topic's may have: longer ones would take long."""


def similar(name: str, existing: Iterable[str]) -> list[str]:
    """The three most similar names at most, the likest first."""
    if len(name) > _LONGEST:
        return []
    known = {each.casefold(): each for each in existing if len(each) <= _LONGEST}
    return [known[each] for each in get_close_matches(name.casefold(), known, n=3, cutoff=0.6)]


def did_you_mean(name: str, existing: Iterable[str]) -> str:
    """A question that names the similar ones; "" if none is."""
    near = similar(name, existing)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""
