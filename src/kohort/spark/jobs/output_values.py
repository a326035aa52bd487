"""The values of an aggregate's output topic, cut out of the store's JSON without parsing it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import key_objects, window_texts
from kohort.spark.jobs.outputs import WindowEnd

_STATE = ',"state":{'
"""The last one in a value is where its state begins: quotes within texts are escaped, and the state is flat."""


_START: Final = 11
"""Where a window's start is in a key, `{"window":"2013-01-01T05:00:00.000Z",…`: so many bytes come before it."""
_AFTER_START: Final = _START + 24 + 1


def output_values(keys: pa.Array, values: pa.Array, end: WindowEnd | None = None) -> pa.Array:
    """What the output topic of an aggregate gets, of the store's keys and values: `{"origin":"JFK","n":12}`.

    Args:
        keys: JSON objects, as in the store: `{"origin":"JFK"}`; `{}` where nothing is grouped by.
        values: JSON objects, as in the store, whose last field is their state; null gives null.
        end: comes after the window's start, with which the keys begin then.

    Returns:
        binary; one object each, the key's fields first.
    """
    split = pc.split_pattern(_text(values), _STATE, max_splits=1, reverse=True)
    # A value that has nothing but state.
    finished = pc.if_else(pc.greater(pc.list_value_length(split), 1), pc.list_element(split, 0), "{")
    inside = pc.binary_replace_slice(finished, 0, 1, "")
    raw = pc.cast(_text(keys), pa.binary())
    group = pc.cast(pc.binary_slice(raw, 1, -1), pa.string())
    if end is not None and len(raw):
        head, rest = (
            pc.cast(pc.binary_slice(raw, *part), pa.string()) for part in ((1, _AFTER_START), (_AFTER_START, -1))
        )
        texts = window_texts(pc.add(window_starts(raw), end.size))
        field = pc.utf8_slice_codeunits(key_objects([end.name], [texts]), 1, -1)
        group = pc.binary_join_element_wise(head, ",", field, rest, "")
    comma = pc.if_else(pc.or_(pc.equal(group, ""), pc.equal(inside, "")), "", ",")
    joined = pc.binary_join_element_wise("{", group, comma, inside, "}", "")
    return pc.cast(joined, pa.binary())


def window_starts(keys: pa.Array) -> pa.Array:
    """Where the windows begin that keys (binary) of a store begin with, in ms since 1970."""
    starts = pc.binary_slice(keys, _START, _START + 23)
    seconds = pc.strptime(pc.cast(pc.binary_slice(starts, 0, 19), pa.string()), "%Y-%m-%dT%H:%M:%S", "s")
    millis = pc.cast(pc.cast(pc.binary_slice(starts, 20, 23), pa.string()), pa.int64())
    return pc.add(pc.multiply(pc.cast(seconds, pa.int64()), 1000), millis)


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(pa.string())
