"""Errors in input data."""

from __future__ import annotations


class DataError(Exception):
    """Input that can't be read; the text says where (file, line) and what is wrong. What comes before it was read."""


def no_separator(source: str, line: int, separator: bytes) -> DataError:
    """The error of a line that has no key."""
    return DataError(f"{source}, line {line}: there is no key separator {separator.decode(errors='replace')!r} in it")
