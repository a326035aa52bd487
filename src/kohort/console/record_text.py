"""Keys, values and headers of records, as a page shows them."""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

import msgspec

from kohort.console.record_decoding import Decoded
from kohort.console.words import visible

MOST_BYTES: Final = 16 * 1024
"""Bytes that are shown of a key or value."""

_MOST_INDENTED: Final = 8 * MOST_BYTES
"""Characters of JSON with its indents; what has more is shown as it is."""

_MOST_DEPTH: Final = 50
"""Of JSON that is indented: indents grow with the square of its depth."""

_LINE: Final = 16


class Form(enum.StrEnum):
    """How bytes are shown."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    HEX = "hex"


class Shown(NamedTuple):
    """Bytes as they are shown.

    Attributes:
        text: what is seen.
        form: "null", "empty", "json", "text" or "hex".
        note: what has to be said about it, "" for nothing.
    """

    text: str
    form: str
    note: str = ""


def shown(data: bytes | None, form: Form = Form.AUTO) -> Shown:
    """Decodes bytes.

    By itself it takes the first that fits: an object or list in JSON, which is indented; UTF-8 without control
    characters; hex. JSON and text that were asked for and don't fit are shown in hex, and so it says.
    """
    if data is None:
        return Shown("null", "null")
    if not data:
        return Shown("", "empty", "empty")
    if form is not Form.HEX:
        if form is not Form.TEXT and (found := _json(data, form)) is not None:
            return found
        if form is not Form.JSON and (found := _text(data, form)) is not None:
            return found
    note = {Form.JSON: "no JSON", Form.TEXT: "no UTF-8"}.get(form, "")
    return Shown(_hex(data[:MOST_BYTES]), "hex", "; ".join(filter(None, (note, _cut(len(data))))))


def shown_as(decoded: Decoded, data: bytes | None, form: Form = Form.AUTO) -> Shown:
    """Bytes as what they mean, if that is known and nothing else is asked for; else as `shown` has them."""
    meant = decoded.value is not None and (decoded.form not in ("text", "json") or decoded.note != "")
    if form is Form.AUTO and meant and (read := _meant(decoded)) is not None:
        return read
    found = shown(data, form)
    return found._replace(note="; ".join(filter(None, (found.note, decoded.note))))


def _meant(decoded: Decoded) -> Shown | None:
    try:
        raw = msgspec.json.encode(decoded.value)
    except (ValueError, RecursionError):
        return None
    text = _indented(raw, decoded.value) if len(raw) <= MOST_BYTES else raw[:MOST_BYTES].decode(errors="ignore")
    return Shown(visible(text), decoded.form, "; ".join(filter(None, (decoded.note, _cut(len(raw))))))


def _indented(raw: bytes, value: Any) -> str:
    """JSON of a bounded size, with indents unless they would be most of it."""
    indented = raw if _deeper(value, _MOST_DEPTH) else msgspec.json.format(raw, indent=2)
    return (indented if len(indented) <= _MOST_INDENTED else raw).decode()


def _deeper(value: Any, depth: int) -> bool:
    """Whether there are more than so many lists and objects within one another."""
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and (depth == 0 or any(_deeper(each, depth - 1) for each in value))


def _json(data: bytes, form: Form) -> Shown | None:
    if form is Form.AUTO and not data.lstrip().startswith((b"{", b"[")):
        return None  # a lone number or word is text
    if len(data) > MOST_BYTES:
        return None
    try:
        return Shown(visible(_indented(data, msgspec.json.decode(data))), "json")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _text(data: bytes, form: Form) -> Shown | None:
    part = data[:MOST_BYTES]
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        if len(part) == len(data) or error.start < len(part) - 3:  # it isn't just the cut
            return None
        text = part[: error.start].decode()
    if form is Form.AUTO and any(char < " " and char not in "\t\n\r" for char in text):
        return None
    return Shown(visible(text.replace("\r\n", "\n")), "text", _cut(len(data)))


def _cut(size: int) -> str:
    return f"the first {MOST_BYTES:,} of {size:,} bytes" if size > MOST_BYTES else ""


def _hex(data: bytes) -> str:
    """Sixteen bytes a line, with what is ASCII of them."""
    lines = []
    for at in range(0, len(data), _LINE):
        part = data[at : at + _LINE]
        plain = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        lines.append(f"{at:04x}  {part.hex(' '):<{3 * _LINE - 1}}  {plain}")
    return "\n".join(lines)
