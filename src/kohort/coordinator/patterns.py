"""Names that a regular expression matches, in a dialect that no expression can make slow."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["full_matches"]


def full_matches(pattern: str, names: Sequence[str]) -> list[bool]:
    """Which of the names an RE2 pattern matches as a whole.

    RE2, which Arrow brings, takes time in proportion to the names, whatever the pattern.

    Raises:
        ValueError: it is no pattern, or one that RE2 doesn't know: with look-around, or back references.
    """
    import pyarrow
    import pyarrow.compute

    column = pyarrow.array(["", *names], pyarrow.string())
    pyarrow.compute.match_substring_regex(column, pattern)  # "a)|(b" is one in parentheses, but none by itself
    matches: list[bool] = pyarrow.compute.match_substring_regex(column, f"^(?:{pattern})$").to_pylist()
    return matches[1:]
