"""Hexdumps whose bytes are labelled with the fields they belong to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from kohort.cli.terminal import Line, printable
from kohort.protocol.trace import Span

_BYTES_A_LINE = 8
_WIDEST_PATH = 56
_LONGEST_BLOB = 4
"""Lines of bytes shown of one value; longer values are cut."""

_COLOURS = ("cyan", "green", "magenta", "blue", "yellow")


def labelled(data: bytes, spans: Sequence[Span], base: int = 0) -> Iterator[Line]:
    """A line for each span: offset, bytes, field, type, value; long values continue in lines with bytes only.

    `base` is added to the offsets shown.
    """
    width = min(_WIDEST_PATH, max((len(span.path) for span in spans), default=0))
    for span in spans:
        raw = data[span.start : span.end]
        colour = _COLOURS[_depth(span.path) % len(_COLOURS)]
        lines = [raw[at : at + _BYTES_A_LINE] for at in range(0, len(raw), _BYTES_A_LINE)] or [b""]
        cut = len(lines) > _LONGEST_BLOB + 1
        for index, line in enumerate(lines[:_LONGEST_BLOB] if cut else lines):
            offset = f"{base + span.start + index * _BYTES_A_LINE:06x}  "
            if index:
                yield [(offset, "dim"), (line.hex(" "), colour)]
                continue
            yield [
                (offset, "dim"),
                (line.hex(" ").ljust(3 * _BYTES_A_LINE), colour),
                (f" {_shortened(span.path, width).ljust(width)}  ", f"bold {colour}"),
                (f"{_label(span):<12} ", "dim"),
                (printable(_shown(span.value)), ""),
            ]
        if cut:
            yield [(f"        … {len(raw) - _LONGEST_BLOB * _BYTES_A_LINE} bytes more", "dim")]


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


def _depth(path: str) -> int:
    return path.count(".")


def _label(span: Span) -> str:
    return span.type if span.role == "value" else span.role


def _shortened(path: str, width: int) -> str:
    return path if len(path) <= width else f"…{path[-width + 1 :]}"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, tuple):
        number, size = value
        return f"tag {number}, {size} bytes"
    if isinstance(value, uuid.UUID):
        return str(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…'"
