"""Tables of the client commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from kohort.cli.client.fitting import FittingTable
from kohort.cli.terminal import printable

NOTHING: Final = "-"
"""The text of an empty cell."""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """A table. Columns whose names begin with > are aligned right, and None in a cell is a dash.

    A cell that is a `Text` already is taken as it is, with its colour.
    """
    made = FittingTable(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for column in columns:
        right = column.startswith(">")
        header = column.removeprefix(">")
        longest = max(map(len, header.split()), default=0)  # a heading isn't broken within a word
        made.add_column(header, justify="right" if right else "left", overflow="fold", min_width=longest)
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


def numbers(values: Iterable[int]) -> str:
    """Whole numbers, with ranges: `0-3, 7`."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value <= runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def partitions_text(partitions: Iterable[tuple[str, int]]) -> str:
    """Partitions by topic: `flights: 0-3; weather: 1`; also tasks by subtopology."""
    found: dict[str, list[int]] = {}
    for name, number in partitions:
        found.setdefault(name, []).append(number)
    return "; ".join(f"{name}: {numbers(some)}" for name, some in sorted(found.items()))


def _cell(cell: object) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(NOTHING if cell is None else printable(_text(cell)))


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
