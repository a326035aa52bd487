"""Options that commands have alike which list things by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import typer

from kohort.cli.terminal import err, fail

T = TypeVar("T")

PatternOption = Annotated[
    str | None, typer.Option("--pattern", metavar="REGEX", help="Only those whose whole name matches.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N.")]


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """What tells whether a name is wanted; a pattern that is none ends the command."""
    if pattern is None:
        return lambda _: True
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        fail(f"--pattern {pattern}: {error}")
    return lambda name: compiled.fullmatch(name) is not None


def first(things: Iterable[T], limit: int | None) -> list[T]:
    """The first things; of the others standard error says how many they are."""
    found = [*things]
    if limit is not None and len(found) > limit:
        err.print(f"and {len(found) - limit:,} more; without --limit they are shown")
    return found[:limit]
