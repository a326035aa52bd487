"""Writing columns as JSON lines, a whole batch at once."""

from __future__ import annotations

import base64

import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.columns import content
from kohort.cli.data.json_columns import as_json_text, json_objects, json_strings


def render_json(batch: pa.RecordBatch) -> memoryview:
    key, key_encoding = _texts(batch.column("key"))
    value, value_encoding = _texts(batch.column("value"))
    lines = json_objects(
        {
            "topic": json_strings(batch.column("topic").cast(pa.string())),
            "partition": as_json_text(batch.column("partition")),
            "offset": as_json_text(batch.column("offset")),
            "timestamp": as_json_text(batch.column("timestamp").cast(pa.int64())),
            "key": key,
            "key_encoding": key_encoding,
            "value": value,
            "value_encoding": value_encoding,
            "headers": _headers(batch.column("headers")),
        }
    )
    return content(pc.binary_join_element_wise(lines, "\n", ""))


def _texts(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The JSON of each value, and of its encoding: null where it is plain text."""
    try:
        return json_strings(column.cast(pa.string())), pa.nulls(len(column), pa.string())
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        encodings: list[str | None] = []
        for value in column.to_pylist():
            try:
                texts.append(value and value.decode())
                encodings.append(None)
            except UnicodeDecodeError:
                texts.append(base64.b64encode(value).decode())
                encodings.append('"base64"')
        return json_strings(pa.array(texts, pa.string())), pa.array(encodings, pa.string())


def _headers(column: pa.Array) -> pa.Array:
    entries = column.flatten()
    if not len(entries):
        return pa.repeat(pa.scalar("[]"), len(column))
    names, (values, encodings) = pc.struct_field(entries, indices=[0]), _texts(pc.struct_field(entries, indices=[1]))
    objects = json_objects({"key": json_strings(names), "value": values, "value_encoding": encodings})
    lengths = pc.cumulative_sum(pc.list_value_length(column)).cast(pa.int32())
    lists = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), lengths]), objects)
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
