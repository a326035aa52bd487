"""Tables that stay readable in a narrow terminal: long names are cut in their middle, or else rows are stacked.

Nothing is cut in files and pipes, nor of numbers. A wide terminal, or `--json`, has it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_NAME: Final = 17
"""What is left of a name at least: eight characters of its start, and eight of its end."""

_TEXT: Final = 24
_SHORT_TEXT: Final = 10
"""Columns of words get so much at least, before rows are stacked instead: long ones, and those that are shorter."""

_EDGES: Final = 2
_BETWEEN: Final = 3
"""What a table takes beside its columns' widths: at both edges together, and from one column to the next."""


class FittingTable(Table):
    """A table as rich's, whose columns have texts and no styles that span cells; it fits the terminal's width."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as it is, if it fits; else with shorter names; else its rows below each other."""
        columns = [_Cells(console, column) for column in self.columns]
        room = options.max_width - _EDGES - _BETWEEN * (len(columns) - 1)
        cuts = console.file.isatty()  # not `is_terminal`, which is so for a pipe, too, if FORCE_COLOR is set
        if not cuts or sum(each.natural for each in columns) <= room:
            yield from super().__rich_console__(console, options)
            return
        widths = _narrowed(columns, room)
        if widths is None:
            yield from self._stacked(columns)
            return
        yield from self._cut(columns, widths).__rich_console__(console, options)

    def _cut(self, columns: Sequence[_Cells], widths: Sequence[int]) -> Table:
        made = Table(
            title=self.title,
            title_justify=self.title_justify,
            title_style=self.title_style,
            box=self.box,
            pad_edge=self.pad_edge,
        )
        for each, width in zip(columns, widths, strict=True):
            made.add_column(
                each.header, justify=each.column.justify, overflow="fold", style=each.column.style, width=width
            )
        for row in range(self.row_count):
            made.add_row(
                *(each.cut(row, width) for each, width in zip(columns, widths, strict=True)),
                style=self.rows[row].style,
            )
        return made

    def _stacked(self, columns: Sequence[_Cells]) -> Iterator[Text | Table | Padding]:
        """A block of lines for each row: what the first column has, and below it the others, without empty ones."""
        if self.title is not None:
            yield Text.assemble(self.title, style=self.title_style or "")
        first, *others = columns
        for row in range(self.row_count):
            name = first.cells[row].copy()
            name.stylize("bold")
            headed = Table.grid(padding=(0, 1))
            if first.header.plain:
                headed.add_column(style="dim", no_wrap=True)
                headed.add_column(overflow="fold")
                headed.add_row(first.header, name)
            else:
                headed.add_column(overflow="fold")
                headed.add_row(name)
            yield headed
            lines = Table.grid(padding=(0, 1))
            lines.add_column(style="dim", no_wrap=True)
            lines.add_column(overflow="fold")
            for each in others:
                if each.cells[row].plain not in ("", "-"):
                    lines.add_row(each.header, each.cells[row])
            if lines.row_count:
                yield Padding(lines, (0, 0, 0, 2), expand=False)


class _Cells:
    """A column's cells, and how wide it is and has to be.

    Attributes:
        natural, least: its width, and what it can be narrowed to.
    """

    def __init__(self, console: Console, column: Column) -> None:
        self.column = column
        self.header = console.render_str(column.header) if isinstance(column.header, str) else Text(str(column.header))
        self.cells = [cell if isinstance(cell, Text) else console.render_str(str(cell)) for cell in column.cells]
        for cell in self.cells:
            if column.style and cell.plain:
                cell.stylize_before(column.style)
        texts = [self.header, *self.cells]
        self.natural = max(each.cell_len for each in texts)
        heading = max((cell_len(word) for word in self.header.plain.split()), default=0)
        self._words = any(" " in each.plain for each in self.cells)
        if column.justify == "right":
            self.least = self.natural
        elif self._words:
            longest = max(cell_len(word) for each in self.cells for word in each.plain.split() or [""])
            self.least = max(heading, longest, _TEXT if self.natural > _TEXT else min(self.natural, _SHORT_TEXT))
        else:
            self.least = max(heading, min(self.natural, _NAME))

    def cut(self, row: int, width: int) -> Text:
        """A cell in so much room: words are wrapped later, and a name is cut in the middle."""
        cell = self.cells[row]
        if self._words or cell.cell_len <= width:
            return cell
        head = _fitting(cell.plain, width // 2)
        tail = _fitting(reversed(cell.plain), width - 1 - cell_len(cell.plain[:head]))
        return Text.assemble(cell[:head], "…", cell[len(cell) - tail :] if tail else "")


def _fitting(characters: Iterable[str], room: int) -> int:
    """How many of them fit; in many scripts one takes two cells."""
    count = 0
    for each in characters:
        room -= get_character_cell_size(each)
        if room < 0:
            break
        count += 1
    return count


def _narrowed(columns: Sequence[_Cells], room: int) -> list[int] | None:
    """The widths of columns that fit, taken from the widest first; None if they can't."""
    widths = [each.natural for each in columns]
    while sum(widths) > room:
        can = [at for at, each in enumerate(columns) if widths[at] > each.least]
        if not can:
            return None
        widths[max(can, key=lambda at: widths[at])] -= 1
    return widths
