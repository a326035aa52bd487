"""Output of the command line, and its errors."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TextIO

import typer
from rich.console import Console
from rich.text import Text

WIDE: Final = 160
"""The width of output that isn't a terminal."""

_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON may hold raw, but a terminal obeys: DEL, C1 controls, line separators, bidirectional marks."""

Line = list[tuple[str, str]]
"""A line of output: pieces of text, each with its style."""


def _width(stream: TextIO | None) -> int | None:
    """The width of output; None takes the terminal's."""
    if stream is not None and stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if re.fullmatch("[1-9][0-9]{0,5}", columns) else WIDE


out = Console(highlight=False, width=_width(sys.stdout))
"""Standard output; wide and without colour where it isn't a terminal."""

err = Console(stderr=True, highlight=False, width=_width(sys.stderr))


def printable(text: str) -> str:
    """`text` with escapes for characters that a terminal would obey instead of showing them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def complain(message: str) -> None:
    """Prints an error; `message` may have several lines."""
    shown = "\n".join(map(printable, message.split("\n")))
    err.print(Text.assemble(("error: ", "bold red"), shown), soft_wrap=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """Prints an error and exits: with 2 for a wrong call, with 1 for wrong data or a failure."""
    complain(message)
    raise typer.Exit(code)


def print_lines(lines: Iterable[Line], console: Console | None = None) -> None:
    """Prints lines as they are; outside of a terminal as plain text, which is much faster for long dumps."""
    console = out if console is None else console
    for line in lines:
        if console.is_terminal:
            console.print(Text.assemble(*line), soft_wrap=True)
        else:
            console.file.write("".join([text for text, _ in line]).rstrip() + "\n")


def json_text(value: Any) -> str:
    """`value` as JSON that standard output can encode, without characters that a terminal would obey."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(value, indent=2, ensure_ascii=not unicode)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(value: Any) -> None:
    """Prints `value` as JSON, coloured in a terminal, which wraps long lines itself."""
    text = json_text(value)
    if out.is_terminal:
        from rich.highlighter import JSONHighlighter

        out.print(JSONHighlighter()(text), soft_wrap=True)
    else:
        typer.echo(text)
