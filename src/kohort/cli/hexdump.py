"""Hexdumps whose bytes are labelled with the fields they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kohort.cli.terminal import Line, printable
from kohort.protocol.labelled_bytes import BYTES_A_LINE, labelled_lines
from kohort.protocol.trace import Span

_WIDEST_PATH: Final = 56
_COLOURS: Final = ("cyan", "green", "magenta", "blue", "yellow")


def labelled(data: bytes, spans: Sequence[Span], base: int = 0) -> Iterator[Line]:
    """A line for each span: offset, bytes, field, type, value; long values continue in lines with bytes only.

    `base` is added to the offsets shown.
    """
    width = min(_WIDEST_PATH, max((len(span.path) for span in spans), default=0))
    for line in labelled_lines(data, spans, base):
        if line.offset is None:
            yield [(f"        … {line.left_out} bytes more", "dim")]
            continue
        colour = _COLOURS[line.depth % len(_COLOURS)]
        offset = f"{line.offset:06x}  "
        if not line.first:
            yield [(offset, "dim"), (line.raw.hex(" "), colour)]
            continue
        yield [
            (offset, "dim"),
            (line.raw.hex(" ").ljust(3 * BYTES_A_LINE), colour),
            (f" {_shortened(line.path, width).ljust(width)}  ", f"bold {colour}"),
            (f"{line.label:<12} ", "dim"),
            (printable(line.value), ""),
        ]


def pointed(data: bytes, offset: int, message: str, base: int = 0) -> Iterator[Line]:
    """The bytes around an offset, and a mark under it."""
    start = max(0, offset // 16 * 16 - 16)
    for at in range(start, max(start, offset) + 17, 16):
        line = data[at : at + 16]
        if line or at <= offset < at + 16:
            yield [(f"{base + at:06x}  ", "dim"), (line.hex(" "), "")]
        if at <= offset < at + 16:
            space = " " * (8 + 3 * (offset - at))
            yield [(space, ""), (f"^^ byte {base + offset}: {printable(message)}", "bold red")]


def _shortened(path: str, width: int) -> str:
    return path if len(path) <= width else f"…{path[-width + 1 :]}"
