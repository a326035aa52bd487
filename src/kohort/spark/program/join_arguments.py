"""What `Stream.join` is given, checked as far as that needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_checks import column_names
from kohort.spark.program.known_columns import check_name


class Side(NamedTuple):
    """A side of a join.

    Attributes:
        where: how messages call it, as "stream 'orders'".
        known: its columns; None if the program's text doesn't show all.
    """

    where: str
    known: tuple[str, ...] | None


def matched_columns(on: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    """The table's key columns by the stream's; None for those of one name.

    Raises:
        ProgramError: they aren't names, or one is there twice.
    """
    if on is None:
        return None
    if not isinstance(on, Mapping):
        return {name: name for name in column_names("join(on)", on)}
    names = column_names("join(on)", tuple(on))
    return dict(zip(names, column_names("join(on)", tuple(on.values())), strict=True))


def added_columns(columns: Sequence[str] | Mapping[str, str] | None, prefix: str) -> tuple[dict[str, str] | None, str]:
    """What a table's columns are called that are added, None for all as they are; and what goes before their names.

    Raises:
        ProgramError: they aren't names, one is there twice, or names and a prefix are given.
    """
    if not isinstance(prefix, str):
        raise ProgramError(f'join(prefix={prefix!r}): a prefix is a text, as "seller_"')
    if columns is None:
        return None, prefix
    if not isinstance(columns, Mapping):
        return {name: name for name in column_names("join(columns)", columns)}, prefix
    if prefix:
        raise ProgramError("join(columns={…}, prefix=…): columns says what each is called, so leave the prefix out")
    names = column_names("join(columns)", tuple(columns))
    return dict(zip(names, column_names("join(columns)", tuple(columns.values())), strict=True)), prefix


def check_matched(what: str, on: Mapping[str, str] | None, left: Side, right: Side) -> None:
    """Refuses misspelt columns among those that are joined on.

    Args:
        what: how messages call the argument, as "join(on)".
        on: the right side's columns by the left one's.

    Raises:
        ProgramError: there is one; says which column may be meant.
    """
    for ours, theirs in (on or {}).items():
        for name, side, other, otherwise in (
            (ours, left, right, f'{{"its column": "{theirs}"}}'),
            (theirs, right, left, f'{{"{ours}": "its column"}}'),
        ):
            if side.known is not None:
                of_one_side = ours == theirs and name in (other.known or ())
                more = f". Where {side.where} calls it otherwise, say on={otherwise}" if of_one_side else ""
                check_name(f"{what} {name!r}", name, side.known, side.where, more)
