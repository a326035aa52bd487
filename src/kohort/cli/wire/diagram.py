"""A message as a diagram in the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.json import JSON
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kohort.protocol.describe import Description, Part

__all__ = ["diagram", "rows", "title"]


def diagram(description: Description) -> RenderableType:
    """The diagram, the schema and the example, to be printed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Field", no_wrap=True)
    table.add_column("Type", no_wrap=True, style="cyan")
    table.add_column("Bytes", no_wrap=True, justify="right", style="green")
    table.add_column("Meaning", style="dim")
    if description.header:
        table.add_row(Text(description.header, style="bold magenta"))
        _add(table, description.header_parts)
    table.add_row(Text(f"{description.name} v{description.version}", style="bold magenta"))
    _add(table, description.parts)
    example = json.dumps(description.example, ensure_ascii=False)
    return Group(
        Text(title(description), style="bold"),
        Text(description.doc),
        Text("\n".join(f"  v{version}: {change}" for version, change in description.history), style="dim"),
        table,
        Text("Schema", style="bold"),
        Padding(Text(description.schema), (0, 0, 1, 2)),
        Text("Example", style="bold"),
        Padding(JSON(example), (0, 0, 1, 2)),
        Text("Example on the wire, without header", style="bold"),
        Padding(Text(description.example_bytes.hex()), (0, 0, 0, 2)),
    )


def title(description: Description) -> str:
    """A line about the message: "HeartbeatRequest v4 · API 12 · versions 0-4 · flexible"."""
    first, last = description.versions
    parts = [f"{description.name} v{description.version}"]
    if description.key >= 0:
        kind = "record type" if description.kind.value == "data" else "API"
        parts.append(f"{kind} {description.key}")
    parts.append(f"version {first}" if first == last else f"versions {first}-{last}")
    parts.append("flexible" if description.flexible else "not flexible")
    return " · ".join(parts)


def rows(parts: tuple[Part, ...], guide: str = "") -> Iterator[tuple[str, Part]]:
    """Each part with the branches that lead to it, depth first."""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        yield f"{guide}{'└─ ' if last else '├─ '}", part
        yield from rows(part.parts, f"{guide}{'   ' if last else '│  '}")


def label(part: Part) -> str:
    """The part's name; `?` marks what may be null, and a tagged field has its number."""
    tag = "" if part.tag is None else f" (tag {part.tag})"
    return f"{part.name}{'?' if part.nullable else ''}{tag}"


def _add(table: Table, parts: tuple[Part, ...]) -> None:
    for guide, part in rows(parts):
        unnamed = part.name in ("message_size", "tagged fields")
        name = Text.assemble((guide, "dim"), (label(part), "italic dim" if unnamed else "bold"))
        table.add_row(name, Text(part.type), "" if part.size is None else str(part.size), Text(part.doc))
