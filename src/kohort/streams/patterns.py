"""Regular expressions for the names of source topics.

Applications write Java's dialect, and every member that joins can send patterns. RE2 reads what both dialects have in
common, and no pattern can slow it down. What it would read otherwise than Java is refused, and so is what it doesn't
know: look-around, back references, possessive quantifiers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.protocol.errors import shown
from kohort.regex import full_matches
from kohort.streams.topology import Topology

MAX_PATTERN: Final = 1000
"""Most characters of a pattern: RE2 spends memory on them, at most 8 MiB."""

MAX_PATTERNS: Final = 100
"""Most patterns of a topology."""


def why_not(topology: Topology) -> str | None:
    """Returns why the source patterns of a topology can't be used; None if they can."""
    if sum(len(part.source_patterns) for part in topology.subtopologies.values()) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS} source patterns"
    for pattern in sorted(topology.source_patterns):
        try:
            check_pattern(pattern)
        except ValueError as error:
            return f"source pattern {shown(pattern)} can't be used: {error}"
    return None


def check_pattern(pattern: str) -> None:
    """Raise ValueError, with a reason, for a pattern that is none, or that would mean something else in Java."""
    if not pattern:
        raise ValueError("it is empty")
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"it is longer than {MAX_PATTERN} characters")
    if _combines_classes(pattern):
        raise ValueError("'[' and '&&' inside of [...] aren't supported")
    matching(pattern, ())


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Returns the names that a pattern matches as a whole, sorted. Raises ValueError for an invalid pattern."""
    ordered = sorted(names)
    return [name for name, matched in zip(ordered, full_matches(pattern, ordered), strict=True) if matched]


def _combines_classes(pattern: str) -> bool:
    """Whether a class holds a class or an intersection, which Java combines and RE2 takes for characters."""
    start: int | None = None
    position = 0
    while position < len(pattern):
        if pattern.startswith(r"\Q", position):
            end = pattern.find(r"\E", position)
            position = len(pattern) if end < 0 else end + 2
            continue
        character = pattern[position]
        if character == "\\":
            position += 2
            continue
        if start is None:
            if character == "[":
                position += pattern.startswith("^", position + 1)
                start = position + 1
        elif character == "[" or pattern.startswith("&&", position):
            return True
        elif character == "]" and position > start:
            start = None
        position += 1
    return False
