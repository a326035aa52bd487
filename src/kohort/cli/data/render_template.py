"""Writing records as text by a template like kcat's, a whole batch at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.columns import content

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


def parse_template(template: str, null: bytes = b"null") -> Callable[[pa.RecordBatch], memoryview]:
    r"""A function that writes the records of a batch, one after another, as bytes.

    Args:
        template: text with `FIELDS` ("%k: %v"), and the escapes \n \t \r \0 \\ \xFF. A newline is added unless it ends
            with one.
        null: text for a key, value or header that is null.

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
    parts = [part for part in parts if part]

    def render(batch: pa.RecordBatch) -> memoryview:
        columns = [
            pa.scalar(part, pa.binary()) if isinstance(part, bytes) else _column(part, batch, null) for part in parts
        ]
        if not any(isinstance(column, pa.Array) for column in columns):
            return memoryview(b"".join(column.as_py() for column in columns) * batch.num_rows)
        return content(pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary())))

    return render


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


def _column(field: str, batch: pa.RecordBatch, null: bytes) -> pa.Array:
    match field:
        case "t":
            return batch.column("topic").cast(pa.string()).cast(pa.binary())
        case "k" | "K":
            column = batch.column("key")
        case "v" | "s" | "S":
            column = batch.column("value")
        case "p":
            return _digits(batch.column("partition"))
        case "o":
            return _digits(batch.column("offset"))
        case "T":
            return _digits(batch.column("timestamp").cast(pa.int64()))
        case "D":
            return _moments(batch.column("timestamp"))
        case _:
            return _headers(batch.column("headers"), null)
    if field in "KS":  # -1 for null, as in kcat
        return _digits(pc.fill_null(pc.binary_length(column), -1))
    return pc.fill_null(column, null)


def _digits(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()).cast(pa.binary())


def _moments(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.timestamp("ms")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "").cast(pa.binary())


def _headers(column: pa.Array, null: bytes) -> pa.Array:
    entries = column.flatten()
    names, values = (pc.struct_field(entries, indices=[index]) for index in range(2))
    equals = pa.scalar(b"=", pa.binary())
    texts = pc.binary_join_element_wise(names.cast(pa.binary()), pc.fill_null(values, null), equals)
    return pc.binary_join(pa.ListArray.from_arrays(_ends(column), texts), pa.scalar(b",", pa.binary()))


def _ends(column: pa.Array) -> pa.Array:
    """The offsets of the lists in the result of `flatten`."""
    lengths = pc.cumulative_sum(pc.list_value_length(column))
    return pa.concat_arrays([pa.array([0], pa.int32()), lengths.cast(pa.int32())])
