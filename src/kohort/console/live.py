"""What an open page shows, and what of it has changed.

The server renders a page from a `View`, and tells the page that is open what differs in the next one. The script of the
page (`static/console.js`) puts it in its place; `apply` does the same, so that tests know what a page comes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Cell", "Table", "View", "apply", "difference", "whole"]


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: what it says.
        href: where it leads; "" is nowhere.
        tone: "good", "warn" or "bad", which colours it: never the only sign of what it says; "" is neither.
        line: the points of a small picture beside the text, of an SVG's polyline; "" for none.
    """

    text: str
    href: str = ""
    tone: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: cells by the rows' keys, in the order of the rows."""

    rows: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """What of a page may change.

    Attributes:
        texts: single values by name.
        tables: tables by name.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)


def whole(view: View) -> dict[str, Any]:
    """All of a view, as a change of any other view of the same page."""
    return {
        "texts": dict(view.texts),
        "tables": {
            name: {
                "rows": {key: [_short(cell) for cell in cells] for key, cells in table.rows.items()},
                "order": [*table.rows],
            }
            for name, table in view.tables.items()
        },
    }


def _short(cell: Cell) -> list[str]:
    """A cell without what it doesn't have at its end."""
    size = next((size for size in range(len(cell), 1, -1) if cell[size - 1]), 1)
    return list(cell[:size])


def difference(before: View, after: View) -> dict[str, Any] | None:
    """What changed, as JSON has it; None for nothing.

    `texts` has the texts that changed. `tables` has, by name, `rows`, the cells of those that changed or are new, by
    key; and `order`, the keys of all rows, unless it's the same: rows that aren't in it are gone.
    """
    change: dict[str, Any] = {}
    texts = {name: text for name, text in after.texts.items() if before.texts.get(name) != text}
    if texts:
        change["texts"] = texts
    tables = {}
    for name, table in after.tables.items():
        old = before.tables.get(name, Table()).rows
        part: dict[str, Any] = {}
        rows = {key: [_short(cell) for cell in cells] for key, cells in table.rows.items() if old.get(key) != cells}
        if rows:
            part["rows"] = rows
        if list(old) != list(table.rows):
            part["order"] = list(table.rows)
        if part:
            tables[name] = part
    if tables:
        change["tables"] = tables
    return change or None


def apply(view: View, change: Mapping[str, Any]) -> View:
    """The view that a change comes to."""
    tables = dict(view.tables)
    for name, part in change.get("tables", {}).items():
        rows = dict(view.tables.get(name, Table()).rows)
        rows.update({key: tuple(Cell(*cell) for cell in cells) for key, cells in part.get("rows", {}).items()})
        tables[name] = Table({key: rows[key] for key in part.get("order", rows)})
    return View({**view.texts, **change.get("texts", {})}, tables)
