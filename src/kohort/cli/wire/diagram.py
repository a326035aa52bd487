"""A message as a diagram in the terminal."""

from __future__ import annotations

import json

from rich import box
from rich.highlighter import JSONHighlighter
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kohort.cli.client.fitting import FittingTable
from kohort.cli.terminal import out
from kohort.protocol.describe import Description, Part
from kohort.protocol.description_text import label, rows, title


def print_diagram(description: Description) -> None:
    out.print(title(description), style="bold", markup=False)
    out.print(description.doc, markup=False)
    out.print(
        "\n".join(f"  v{version}: {change}" for version, change in description.history), style="dim", markup=False
    )
    out.print(_table(description))
    out.print("Schema", style="bold")
    out.print(Padding(Text(description.schema), (0, 0, 1, 2)))
    out.print("Example", style="bold")
    example = json.dumps(description.example, indent=2, ensure_ascii=False)
    for line in JSONHighlighter()(example).split("\n"):
        out.print(Text("  ").append_text(line), soft_wrap=True)  # to be copied
    out.print("\nExample on the wire, without header", style="bold")
    out.print(f"  {description.example_bytes.hex()}", soft_wrap=True)


def _table(description: Description) -> Table:
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Field", overflow="fold")
    table.add_column("Type", overflow="fold", style="cyan")
    table.add_column("Bytes", no_wrap=True, justify="right", style="green")
    table.add_column("Meaning", style="dim")
    if description.header:
        table.add_row(Text(description.header, style="bold magenta"))
        _add(table, description.header_parts)
    table.add_row(Text(f"{description.name} v{description.version}", style="bold magenta"))
    _add(table, description.parts)
    return table


def _add(table: Table, parts: tuple[Part, ...]) -> None:
    for guide, part in rows(parts):
        unnamed = part.name in ("message_size", "tagged fields")
        name = Text.assemble((guide, "dim"), (label(part), "italic dim" if unnamed else "bold"))
        table.add_row(name, Text(part.type), "" if part.size is None else str(part.size), Text(part.doc))
