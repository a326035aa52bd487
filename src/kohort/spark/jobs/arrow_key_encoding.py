"""Keys as texts in Arrow: the same bytes as `kohort.spark.jobs.key_encoding` gives in Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES: Final = {
    "\\": "\\\\",
    '"': '\\"',
    **{each: _SHORT.get(each, f"\\u{ord(each):04X}") for each in map(chr, range(32))},
}
_UNSAFE: Final = '["\\\\\\x00-\\x1f]'


def key_texts(names: Sequence[str], columns: Sequence[pa.Array], *, plain_decimals: bool) -> pa.Array:
    """The columns as keys (STRING): the text of one, null where it is; of several a JSON object.

    Args:
        columns: of strings, whole numbers, decimals, booleans, dates and timestamps, in the Arrow types that Spark has
            for them.
        plain_decimals: whether the text of a decimal has no exponent: Spark's `spark.sql.ansi.enabled`. In JSON it may
            have one either way.
    """
    if len(columns) == 1:
        return _distinct(partial(_text, plain_decimals=plain_decimals), columns[0])
    return key_objects(names, columns)


def key_objects(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """The columns, one at least, as JSON objects (STRING)."""
    pieces: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        field = "".join(_ESCAPES.get(each, each) for each in name)
        pieces += [f'{"," if pieces else "{"}"{field}":', pc.fill_null(_distinct(_json, column), "null")]
    return pc.binary_join_element_wise(*pieces, "}", "")


def window_texts(starts: pa.Array) -> pa.Array:
    """Where windows begin (ms since 1970, years 1 to 9999) as keys have it: 2013-01-01T05:00:00.000Z."""
    encoded = starts.dictionary_encode()
    times = np.datetime_as_string(encoded.dictionary.to_numpy(zero_copy_only=False).astype("datetime64[ms]"))
    texts = pc.binary_join_element_wise(pa.array(times.astype(object), pa.string()), "Z", "")
    return texts.take(encoded.indices)


def group_keys(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """The columns as the keys of stores that aggregates and processors have (STRING): as `key_encoding.store_key`."""
    return key_objects(names, [_shown(column) if pa.types.is_timestamp(column.type) else column for column in columns])


def _shown(column: pa.Array) -> pa.Array:
    """Times as texts, with ms like a window's start, or with µs where there are any; null where there is none."""
    encoded = column.cast(pa.timestamp("us", column.type.tz)).dictionary_encode()
    micros = encoded.dictionary.cast(pa.int64())
    texts = iso_texts(encoded.dictionary)
    whole = pc.equal(pc.subtract(micros, pc.multiply(pc.divide(micros, 1000), 1000)), 0)
    texts = pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, -3), texts)
    zone = "Z" if column.type.tz else ""
    return pc.binary_join_element_wise(texts, zone, "").take(encoded.indices)


def _distinct(write: Callable[[pa.Array], pa.Array], column: pa.Array) -> pa.Array:
    """The text of each value; times are written once each, since that takes longest."""
    if not pa.types.is_temporal(column.type):
        return write(column)
    encoded = column.dictionary_encode()
    return write(encoded.dictionary).take(encoded.indices)


def _text(column: pa.Array, *, plain_decimals: bool) -> pa.Array:
    """As `cast(… as string)` writes it."""
    kind = column.type
    if pa.types.is_date(kind):
        return iso_texts(column)
    if pa.types.is_timestamp(kind):
        return pc.replace_substring_regex(pc.replace_substring(iso_texts(column), "T", " "), r"\.?0+$", "")
    text = column.cast(pa.string())
    if pa.types.is_decimal(kind) and plain_decimals and (small := pc.match_substring(text, "E")).true_count:
        plain = [None if each is None else f"{each:f}" for each in column.filter(small).to_pylist()]
        return pc.replace_with_mask(text, pc.fill_null(small, False), pa.array(plain, pa.string()))
    return text


def _json(column: pa.Array) -> pa.Array:
    """As `to_json` writes it, but for nulls."""
    kind = column.type
    if pa.types.is_string(kind):
        return quoted_texts(escaped(column))
    if pa.types.is_date(kind):
        return quoted_texts(iso_texts(column))
    if pa.types.is_timestamp(kind):
        return quoted_texts(iso_texts(column), "Z" if kind.tz else "")
    return column.cast(pa.string())


def quoted_texts(text: pa.Array, more: str = "") -> pa.Array:
    """Texts between quotation marks; null for null."""
    return pc.binary_join_element_wise('"', text, f'{more}"', "")


def escaped(text: pa.Array) -> pa.Array:
    """Texts as they stand in JSON between quotation marks."""
    if pc.any(pc.match_substring_regex(text, _UNSAFE)).as_py():
        for each, escape in _ESCAPES.items():
            text = pc.replace_substring(text, each, escape)
    return text


def iso_texts(column: pa.Array) -> pa.Array:
    """Dates and times, without nulls, as `2013-01-01` and `2013-01-01T05:00:00.000000`.

    Years before 0 and after 9999 are as Java has them.
    """
    unit, integer = ("D", pa.int32()) if pa.types.is_date(column.type) else ("us", pa.int64())
    # Arrow has other ideas of years beyond 32,767.
    times = column.cast(integer).to_numpy(zero_copy_only=False).astype(f"datetime64[{unit}]")
    text = pa.array(np.datetime_as_string(times).astype(object), pa.string())
    return pc.replace_substring_regex(pc.replace_substring_regex(text, r"^-(\d{3}-)", r"-0\1"), r"^(\d{5,}-)", r"+\1")
