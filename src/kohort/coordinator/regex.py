"""Matching names with RE2, in which no expression is slow."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["full_matches"]


def full_matches(pattern: str, names: Sequence[str]) -> list[bool]:
    """For each name, whether an RE2 pattern matches all of it.

    RE2, which comes with Arrow, takes time in proportion to the names, whatever the pattern.

    Raises:
        ValueError: RE2 doesn't accept the pattern; it has no look-around and no back references.
    """
    import pyarrow
    import pyarrow.compute

    column = pyarrow.array(["", *names], pyarrow.string())
    pyarrow.compute.match_substring_regex(column, pattern)  # "a)|(b" is a pattern in parentheses, but not by itself
    matches: list[bool] = pyarrow.compute.match_substring_regex(column, f"^(?:{pattern})$").to_pylist()
    return matches[1:]
