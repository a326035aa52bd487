"""Tables as records: a JSON object a row, made column by column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_records"]


def as_records(table: pa.Table, key: str | tuple[str, ...]) -> pa.Table:
    """A record for each row, as `Producer.send_table` takes them: columns `key` and `value`, both text.

    Args:
        table: strings, numbers, and timestamps in UTC; nulls become JSON's.
        key: the column whose text is the key; several: the key is a JSON object of them.
    """
    keys = pc.cast(table[key], pa.string()) if isinstance(key, str) else _objects(table.select(list(key)))
    return pa.table({"key": keys, "value": _objects(table)})


def _objects(table: pa.Table) -> pa.ChunkedArray:
    pieces: list[pa.Scalar | pa.ChunkedArray] = []
    for name in table.column_names:
        pieces += [pa.scalar(f'{"," if pieces else "{"}"{name}":'), _json(table[name])]
    return pc.binary_join_element_wise(*pieces, pa.scalar("}"), pa.scalar(""))


def _json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        text = _quoted(pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ"))
    elif pa.types.is_string(column.type):
        text = _quoted(pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"'))
    else:
        text = pc.cast(column, pa.string())
    return pc.fill_null(text, "null")


def _quoted(column: pa.ChunkedArray) -> pa.ChunkedArray:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, column, quote, pa.scalar(""))
