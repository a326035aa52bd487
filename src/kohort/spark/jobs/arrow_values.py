"""Numbers and flat objects as JSON in Arrow, whole columns at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

Fields = Sequence[tuple[str, Any]]
"""Names, and texts in JSON or, of an object within, its fields."""


def number_texts(column: pa.Array) -> pa.Array:
    """Numbers as texts that read back as the same numbers; what isn't finite as Spark calls it."""
    text = column.cast(pa.string())
    if not pa.types.is_floating(column.type):
        return text
    whole = pc.invert(pc.match_substring_regex(text, "[.en]"))  # a DOUBLE is one for every reader, 5.0 as well
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    if _all_finite(column):
        return text
    for arrows, sparks in _NOT_FINITE.items():
        text = pc.if_else(pc.equal(text, arrows), sparks, text)
    return text


def json_numbers(column: pa.Array, text: pa.Array) -> pa.Array:
    """The texts of a column's numbers as values in JSON: quoted where they aren't finite, as Spark has it."""
    if not pa.types.is_floating(column.type) or _all_finite(column):
        return text
    return pc.if_else(pc.is_finite(column), text, pc.binary_join_element_wise('"', text, '"', ""))


def json_array(texts: Sequence[pa.Array]) -> pa.Array:
    """Arrays of so many values, one at least; null where one is null."""
    pieces = [piece for text in texts for piece in (",", text)][1:]
    return pc.binary_join_element_wise("[", *pieces, "]", "")


def json_object(fields: Fields) -> pa.Array:
    """Objects of these fields, as binary; a field whose text is null is null."""
    pieces = [*_pieces(fields, "{"), "}", ""]
    # Its last one stands between all others.
    return pc.binary_join_element_wise(*pieces, null_handling="replace", null_replacement="null").cast(pa.binary())


def _pieces(fields: Fields, start: str) -> list[Any]:
    pieces: list[Any] = []
    for name, value in fields:
        opening = f"{',' if pieces else start}{json.dumps(name, ensure_ascii=False)}:"
        if isinstance(value, list):
            first, *rest = _pieces(value, "{")
            pieces += [opening + first, *rest, "}"]
        else:
            pieces += [opening, value]
    return pieces


def _all_finite(column: pa.Array) -> bool:
    return bool(pc.all(pc.is_finite(column), min_count=0).as_py())
