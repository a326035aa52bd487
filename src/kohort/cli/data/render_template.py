"""Writing columns as text by a template, a whole batch at once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.columns import content
from kohort.cli.data.record_path import Render, Template


def text(template: Template, null: bytes) -> Render:
    def render(batch: pa.RecordBatch) -> memoryview:
        columns = [
            pa.scalar(part, pa.binary()) if isinstance(part, bytes) else _column(part, batch, null) for part in template
        ]
        if not any(isinstance(column, pa.Array) for column in columns):
            return memoryview(b"".join(column.as_py() for column in columns) * batch.num_rows)
        return content(pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary())))

    return render


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
    moments = pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")
    return pc.if_else(pc.starts_with(texts, "<"), texts, moments).cast(pa.binary())  # "<value out of range: …>"


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
