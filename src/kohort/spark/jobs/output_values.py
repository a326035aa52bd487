"""The values of an aggregate's output topic, cut out of the store's JSON without parsing it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_STATE = ',"state":{'
"""The last one in a value is where its state begins: quotes within texts are escaped, and the state is flat."""


def output_values(keys: pa.Array, values: pa.Array) -> pa.Array:
    """What the output topic of an aggregate gets, of the store's keys and values: `{"origin":"JFK","n":12}`.

    Args:
        keys: JSON objects, as in the store: `{"origin":"JFK"}`; `{}` where nothing is grouped by.
        values: JSON objects, as in the store, whose last field is their state; null gives null.

    Returns:
        binary; one object each, the key's fields first.
    """
    split = pc.split_pattern(_text(values), _STATE, max_splits=1, reverse=True)
    # A value that has nothing but state.
    finished = pc.if_else(pc.greater(pc.list_value_length(split), 1), pc.list_element(split, 0), "{")
    inside = pc.binary_replace_slice(finished, 0, 1, "")
    group = pc.cast(pc.binary_slice(pc.cast(_text(keys), pa.binary()), 1, -1), pa.string())
    comma = pc.if_else(pc.or_(pc.equal(group, ""), pc.equal(inside, "")), "", ",")
    joined = pc.binary_join_element_wise("{", group, comma, inside, "}", "")
    return pc.cast(joined, pa.binary())


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(pa.string())
