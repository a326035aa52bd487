"""A document as a tree of values that know where they stand, so that a mistake can be pointed at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn


class DocumentError(ValueError):
    """What is wrong with a document: its text names the file, the place, and what would be right."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a document.

    Attributes:
        data: text, a list of values, a dict of values by key, or None for nothing (an empty place, or `null`).
        file: how to call the file.
        line: where the value begins, from 1; None where that isn't known (JSON).
        path: keys and indexes that lead here, such as "members.m1.active"; "" for the whole document.
    """

    data: str | list[Value] | dict[str, Value] | None
    file: str
    line: int | None
    path: str = ""

    def refuse(self, problem: str) -> NoReturn:
        """Raise a `DocumentError` that says what is wrong here."""
        where = [self.file]
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.path:
            where.append(self.path)
        raise DocumentError(f"{', '.join(where)}: {problem}")


def mapping_of(pairs: Iterable[tuple[str, Value | None, Any]], place: Value) -> dict[str, Any]:
    """The pairs as a dict, where no key may come twice; each key stands where the value beside it says."""
    found: dict[str, Any] = {}
    for key, at, value in pairs:
        if key in found:
            (at or place).refuse(f"{key!r} stands here twice; one of them is too many")
        found[key] = value
    return found
