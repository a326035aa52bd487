"""The lines of a hexdump whose bytes are labelled with the fields they belong to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kohort.protocol.trace import Span

__all__ = ["BYTES_A_LINE", "LabelledLine", "labelled_lines"]

BYTES_A_LINE: Final = 8
_LONGEST_BLOB: Final = 4
"""Lines of bytes shown of one value; longer values are cut."""


class LabelledLine(NamedTuple):
    """A line.

    Attributes:
        offset: of its first byte; None for the line that says how many are left out.
        raw: its bytes.
        path: the field; "" for the message itself, and where a value goes on.
        label: the field's type, or what else the bytes are; "" where a value goes on.
        value: the value, in short; not escaped.
        first: whether a field begins here.
        depth: how far within others the field is.
        left_out: how many bytes are left out here.
    """

    offset: int | None
    raw: bytes
    path: str = ""
    label: str = ""
    value: str = ""
    first: bool = False
    depth: int = 0
    left_out: int = 0


def labelled_lines(data: bytes, spans: Sequence[Span], base: int = 0) -> Iterator[LabelledLine]:
    """A line for each span, and for long values more of them with bytes only.

    `base` is added to the offsets.
    """
    for span in spans:
        raw = data[span.start : span.end]
        depth = span.path.count(".")
        lines = [raw[at : at + BYTES_A_LINE] for at in range(0, len(raw), BYTES_A_LINE)] or [b""]
        cut = len(lines) > _LONGEST_BLOB + 1
        for index, line in enumerate(lines[:_LONGEST_BLOB] if cut else lines):
            offset = base + span.start + index * BYTES_A_LINE
            if index:
                yield LabelledLine(offset, line, depth=depth)
            else:
                label = span.type if span.role == "value" else span.role
                yield LabelledLine(offset, line, span.path, label, _shown(span.value), True, depth)
        if cut:
            yield LabelledLine(None, b"", depth=depth, left_out=len(raw) - _LONGEST_BLOB * BYTES_A_LINE)


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
