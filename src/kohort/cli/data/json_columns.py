"""Arrow columns as JSON text, and as members of JSON objects, without Python objects for rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SPECIAL: Final = r'["\\\x00-\x1f\x7f]'
_CONTROLS: Final = [*range(0x20), 0x7F]
_SHORT: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def json_strings(texts: pa.Array) -> pa.Array:
    """Strings in JSON, with quotes; null as null."""
    if pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        texts = pc.replace_substring(texts, "\\", "\\\\")
        texts = pc.replace_substring(texts, '"', '\\"')
        for char in _controls(texts):
            texts = pc.replace_substring(texts, char, _SHORT.get(char, f"\\u{ord(char):04x}"))
    return pc.fill_null(_joined(['"', texts, '"']), "null")


def as_json_text(column: pa.Array) -> pa.Array:
    """The JSON text of each value of any type; values other than numbers and flags are strings.

    Bytes must be UTF-8. Floating-point numbers that JSON doesn't have (NaN, infinities) are null.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_json_text(column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return json_strings(column.cast(pa.string()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return pc.fill_null(column.cast(pa.string()), "null")
    if pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        return pc.fill_null(finite.cast(pa.string()), "null")
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar("null"), len(column))
    if pa.types.is_nested(kind):
        return pa.array([msgspec.json.encode(value).decode() for value in column.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        moments = pc.replace_substring(column.cast(pa.timestamp(kind.unit)).cast(pa.string()), " ", "T")
        return json_strings(_joined([moments, "Z"]))
    return json_strings(column.cast(pa.string()))


def json_objects(members: Mapping[str, pa.Array]) -> pa.Array:
    """An object a row, as strings, from its members' JSON texts by name; a null text leaves the member out."""
    parts: list[Any] = ["{"]
    always = False  # whether a member that is always there comes before
    for name, texts in members.items():
        opening = f"{msgspec.json.encode(name).decode()}:"
        if not texts.null_count:
            parts += [("," if always else "") + opening, texts]
            always = True
        elif always:
            parts.append(pc.fill_null(_joined(["," + opening, texts]), ""))
        else:
            raise ValueError("the first member of an object must always be there")
    return _joined([*parts, "}"])


def _joined(parts: list[Any]) -> pa.Array:
    """Strings and columns of strings, joined row by row; null where one of them is."""
    return pc.binary_join_element_wise(*parts, "")


def _controls(texts: pa.Array) -> list[str]:
    data = texts.buffers()[2]
    present = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    return [chr(code) for code in _CONTROLS if present[code]]
