"""How things look in a notebook: small pieces of HTML, in which all text that comes from elsewhere is escaped.

Styles are in the elements, few, and without colours of a background, since notebooks are light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_STYLE: Final = {
    "table": "border-collapse: collapse; margin: 4px 0",
    "th": "text-align: left; padding: 2px 8px; border-bottom: 1px solid #8888",
    "td": "text-align: left; padding: 2px 8px; vertical-align: top",
    "number": "text-align: right; padding: 2px 8px; vertical-align: top",
    "pre": "white-space: pre; overflow-x: auto; margin: 4px 0",
}
_COLOURS: Final = {"good": "#2a9d3f", "busy": "#1f8fb5", "odd": "#c98a00", "bad": "#d03b3b", "plain": "#888888"}


class Html(str):
    """HTML, which isn't escaped again."""

    __slots__ = ()


Cell = str | int | float | None
"""Of a table: text, `Html`, or a number; None is nothing."""


class PlainText(str):
    """A text of several lines, which a notebook shows as such, too."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<pre style="{_STYLE["pre"]}">{_escaped(self)}</pre>'


def html(value: Cell) -> Html:
    """A value as HTML. Characters that would be obeyed instead of being shown are written as escapes."""
    if isinstance(value, Html):
        return value
    if isinstance(value, PlainText):
        return Html(value._repr_html_())
    if value is None:
        return Html()
    if isinstance(value, float):
        return Html(f"{value:,.1f}")
    if isinstance(value, int):
        return Html(f"{value:,}")
    return _escaped(value)


def lines(values: Iterable[Cell]) -> Html:
    """Values one below the other."""
    return Html("<br>".join(map(html, values)))


def badge(word: str, tone: str = "plain") -> Html:
    """A word in the colour of its tone: good, busy, odd, bad or plain."""
    colour = _COLOURS[tone]
    style = f"color: {colour}; border: 1px solid {colour}; border-radius: 8px; padding: 0 6px; font-size: 85%"
    return Html(f'<span style="{style}">{html(word)}</span>')


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Html:
    """A table; nothing where there are no rows. Numbers are at the right."""
    found = list(rows)
    if not found:
        return Html()
    head = "".join(f'<th style="{_STYLE["th"]}">{html(each)}</th>' for each in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in found)
    return Html(f'<table style="{_STYLE["table"]}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def paragraph(text: Cell, tone: str | None = None) -> Html:
    """Text of its own; in the colour of its tone, if it has one."""
    style = "margin: 4px 0" + ("" if tone is None else f"; color: {_COLOURS[tone]}")
    return Html(f'<div style="{style}">{html(text)}</div>')


def page(what: str, name: str, *parts: Cell, state: Html | None = None) -> Html:
    """All of something: what it is, its name, its state, and what there is to say of it."""
    title = f"<b>{html(name)}</b> {html(what)} {html(state)}".rstrip()
    return Html(f"<div>{paragraph(Html(title))}{''.join(map(html, parts))}</div>")


def _escaped(text: str) -> Html:
    return Html(escape("".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)))


def _cell(value: Cell) -> str:
    style = _STYLE["number" if isinstance(value, int | float) else "td"]
    return f'<td style="{style}">{html(value)}</td>'
