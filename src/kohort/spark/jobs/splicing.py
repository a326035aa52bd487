"""Text of JSON objects, put together in Arrow without reading it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_STATE = ',"state":{'


def without_state(values: pa.Array) -> pa.Array:
    """Values of an aggregate's store without their state: `{"n":12,"state":{…}}` becomes `{"n":12}`. Null stays null.

    `"state"` is the last field, and all in it are numbers, strings and booleans, in which quotes are escaped: so the
    last `,"state":{` is it, whatever is in the other columns.
    """
    head = _head(values)
    return pc.binary_join_element_wise(head, "}", "").cast(pa.binary())


def output_values(keys: pa.Array, values: pa.Array) -> pa.Array:
    """What the output topic of an aggregate gets, of the store's keys and values: `{"origin":"JFK","n":12}`.

    Args:
        keys: JSON objects, as in the store: `{"origin":"JFK"}`; `{}` where nothing is grouped by.
        values: JSON objects, as in the store, with at least one column before their state; null gives null.

    Returns:
        binary; one object each, the key's fields first.
    """
    keys = _text(keys)
    start = pc.binary_slice(keys.cast(pa.binary()), 0, -1).cast(pa.string())
    comma = pc.if_else(pc.equal(start, "{"), "", ",")
    rest = pc.utf8_replace_slice(_head(values), 0, 1, "")
    return pc.binary_join_element_wise(start, comma, rest, "}", "").cast(pa.binary())


def _head(values: pa.Array) -> pa.Array:
    """The values up to their state, without a closing brace."""
    parts = pc.split_pattern(_text(values), _STATE, max_splits=1, reverse=True)
    return pc.list_element(parts, 0)


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(pa.string())
