"""Errors in input data."""

from __future__ import annotations


class DataError(Exception):
    """Input that can't be read; the text says where (file, line) and what is wrong. What comes before it was read."""


def no_separator(source: str, line: int, separator: bytes) -> DataError:
    """The error of a line that has no key."""
    return DataError(f"{source}, line {line}: there is no key separator {separator.decode(errors='replace')!r} in it")


def no_key(where: str, field: str, what: str | None) -> DataError:
    """The error of a row whose key has no value: its field is missing, or it is `what`: null, or empty."""
    why = f"there is no field {field!r}" if what is None else f"the field {field!r} is {what}"
    return DataError(f"{where}: {why}, and it is the key; --null-keys sends such records without one")
