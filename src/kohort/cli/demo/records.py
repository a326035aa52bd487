"""Tables as records: a JSON object a row."""

from __future__ import annotations

import pyarrow as pa

from kohort.cli.data.json_columns import as_json_text, json_objects


def as_records(table: pa.Table, key: str | tuple[str, ...]) -> pa.Table:
    """A record for each row, as `Producer.send_table` takes them: columns `key` and `value`, both text.

    Args:
        table: strings, numbers, and timestamps in UTC; nulls become JSON's.
        key: the column whose text is the key; several: the key is a JSON object of them.
    """
    keys = table[key].cast(pa.string()) if isinstance(key, str) else _objects(table.select(list(key)))
    return pa.table({"key": keys, "value": _objects(table)})


def _objects(table: pa.Table) -> pa.Array:
    return json_objects({name: as_json_text(table[name].combine_chunks()) for name in table.column_names})
