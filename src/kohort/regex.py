"""Matching names with RE2, in which no expression is slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import re2

__all__ = ["full_matches"]

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True
_OPTIONS.max_mem = 1024 * 1024  # an eighth of RE2's own limit, with which one name can take milliseconds


def full_matches(pattern: str, names: Iterable[str]) -> list[bool]:
    """For each name, whether an RE2 pattern matches all of it.

    RE2 takes time in proportion to the names, whatever the pattern, and at most 1 MiB for it.

    Raises:
        ValueError: RE2 doesn't accept the pattern, or it is too large; it has no look-around and no back references.
    """
    try:
        compiled = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise ValueError(f"invalid regular expression: {error.args[0].decode(errors='replace')}") from None
    finally:
        re2.purge()  # its cache would keep the memory of 128 patterns
    return [compiled.fullmatch(name.encode()) is not None for name in names]
