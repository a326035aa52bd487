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


def _cell(cell: object) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(NOTHING if cell is None else printable(_text(cell)))


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
