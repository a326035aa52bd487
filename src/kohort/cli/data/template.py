"""Templates like kcat's, by which records are written as text."""

from __future__ import annotations

import re
from typing import Final

from kohort.cli.data.record_path import Template

FIELDS: Final = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "v": "value",
    "s": "value, as in kcat",
    "T": "timestamp (ms)",
    "D": "date and time (UTC)",
    "h": "headers (name=value,…)",
    "K": "length of the key",
    "S": "length of the value",
}
"""Letters that may follow a "%", besides a second one."""

_PIECE: Final = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\", "%": b"%"}


def parse_template(template: str) -> Template:
    r"""The parts of a template.

    Args:
        template: text with `FIELDS` ("%k: %v"), and the escapes \n \t \r \0 \\ \xFF. A newline is added unless it ends
            with one.

    Raises:
        ValueError: an unknown field or escape.
    """
    parts: list[bytes | str] = []  # literal bytes, and names of fields
    end = 0
    for found in _PIECE.finditer(template):
        parts.append(template[end : found.start()].encode(errors="surrogateescape"))
        parts.append(_literal(found) if found[0][0] == "\\" or found[1] == "%" else _field(found))
        end = found.end()
    parts.append(template[end:].encode(errors="surrogateescape"))
    last = parts[-1] or parts[-2 if len(parts) > 1 else -1]
    if not (isinstance(last, bytes) and last.endswith(b"\n")):
        parts.append(b"\n")
    return [part for part in parts if part]


def _literal(found: re.Match[str]) -> bytes:
    if found[0][0] == "%":
        return b"%"
    escape = found[2]
    if len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in _ESCAPES:
        raise ValueError(f"\\{escape} isn't known; there are \\n \\t \\r \\0 \\\\ \\xFF")
    return _ESCAPES[escape]


def _field(found: re.Match[str]) -> str:
    if found[1] not in FIELDS or not found[1]:
        known = ", ".join(f"%{letter} ({meaning})" for letter, meaning in FIELDS.items())
        raise ValueError(f"%{found[1]} isn't known; there are {known}, and %%")
    return found[1]
