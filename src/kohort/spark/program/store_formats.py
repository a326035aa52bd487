"""What a store holds, as far as another program has to know it, as data and as text.

Each committed offset says it of the stores that are made of its topic, so a changed program can be compared with them.
A topic of rows, between two subtopologies, is described like a store, under the name `ROWS`.

    {"delays": ["0a1b2c3d", {"n": "4e5f60", "mean": "718293"}, {"worst": "a4b5c6"}]}

That is: what its keys and windows are; its columns; columns that a program before had, whose values old keys may still
have. A fourth element, `"left"`: no program has written it since. A column that is computed by an expression of the
user's is followed by that as Spark prints it, `"4e5f60:0a1b2c"`: another one is told of, but no reason to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

ROWS: Final = ""
"""Stands for the rows of a repartition topic, where stores have names."""
_LEFT: Final = "left"


@dataclass(frozen=True)
class StoreFormat:
    """What a store holds.

    Attributes:
        keys: changes with what keys, windows and partitions are. No program can read a store with other ones.
        columns: what each column of its values means, by name.
        dropped: columns of programs before, which some values may still have.
        left: whether the program that read its topic last had no such store.
    """

    keys: str
    columns: Mapping[str, str]
    dropped: Mapping[str, str] = field(default_factory=dict)
    left: bool = False


StoreFormats = Mapping[str, StoreFormat]
"""Of all that is made of a topic, by the stores' names."""


def carried(before: StoreFormats, now: StoreFormats) -> StoreFormats:
    """What is to be committed by a program with the formats `now`, where `before` was committed.

    What it has dropped is remembered, since it is still there.
    """
    found: dict[str, StoreFormat] = {name: replace(old, left=True) for name, old in before.items() if name not in now}
    for name, new in now.items():
        old = before.get(name)
        past = {} if old is None or old.keys != new.keys else {**old.dropped, **old.columns}
        found[name] = replace(new, dropped={each: past[each] for each in past if each not in new.columns})
    return found


def with_expression(column: str, printed: str) -> str:
    """A column's digest, followed by that of its expression."""
    return f"{column}:{printed}"


def same_column(before: str, now: str) -> bool:
    """Whether two digests are of columns that mean the same, but for their expressions."""
    return before.partition(":")[0] == now.partition(":")[0]


def other_expressions(before: StoreFormat, now: StoreFormat) -> list[str]:
    """The columns whose expressions aren't those that values were made with, as far as both are known."""
    past = {**before.dropped, **before.columns}
    pairs = ((name, past.get(name, "").partition(":")[2], now.columns[name].partition(":")[2]) for name in now.columns)
    return [name for name, old, new in pairs if old and new and old != new]


def as_plain(formats: StoreFormats) -> dict[str, Any]:
    """The same as JSON has it."""
    return {name: _plain(each) for name, each in formats.items()}


def parsed(plain: Any) -> StoreFormats:
    """What `as_plain` was given.

    Raises:
        ValueError, TypeError, AttributeError: it is something else.
    """
    return {str(name): _parsed(each) for name, each in plain.items()}


def _plain(each: StoreFormat) -> list[Any]:
    parts: list[Any] = [each.keys, dict(each.columns)]
    if each.dropped or each.left:
        parts.append(dict(each.dropped))
    return [*parts, _LEFT] if each.left else parts


def _parsed(plain: Any) -> StoreFormat:
    keys, columns, *more = plain
    dropped = more[0] if more else {}
    return StoreFormat(str(keys), _digests(columns), _digests(dropped), left=more[1:] == [_LEFT])


def _digests(plain: Any) -> dict[str, str]:
    return {str(name): str(digest) for name, digest in plain.items()}
