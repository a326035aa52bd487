"""What is written of an epoch: results of accepted records, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from kohort.spark.jobs.stages.encode_values import ValueEncoding, encoder_of
from kohort.spark.letter_headers import letter_headers
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.settlement import Numbers

JSON: Final = "json"


def key_column(number: int) -> str:
    """The column of a result that has the key for an output, by its number."""
    return f"_output_{number}_key"


def value_column(number: int) -> str:
    """The column of a result that has the JSON for an output, by its number."""
    return f"_output_{number}_value"


def output_records(queue: CompiledQueue, results: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Topics, and the records that they get of the results: `key` and `value`.

    Raises:
        ValueError: a row can't be written in the format.
    """
    from pyspark.sql.types import StructType

    if not results.num_rows:
        return
    for number, output in enumerate(queue.outputs):
        if output.format == JSON:
            values = results.column(value_column(number)).cast(pa.binary())
        else:
            schema = StructType([queue.result[name] for name in output.columns])
            encoding = ValueEncoding(output.format, schema.json(), output.avro_schema, delimiter=output.delimiter)
            values = encoder_of(encoding).encode(results.select(output.columns).combine_chunks())
        keys = pa.nulls(results.num_rows, pa.binary())
        if output.key is not None:
            keys = results.column(key_column(number)).cast(pa.binary())
        yield output.topic, pa.table({"key": keys, "value": values})


def dead_letters(topic: str, records: pa.Table, rows: Numbers, reasons: Mapping[int, str]) -> pa.Table:
    """Records as they were, with the reason and the place in headers more (`letter_headers`).

    Args:
        topic: where they are from.
        records: the epoch's, as `ShareConsumer.batches` has them.
        rows: those that are rejected.
        reasons: by row.
    """
    rejected = records.take(pa.array(rows))
    said = rejected.select(["partition", "offset", "headers"]).to_pylist()
    headers = [
        [
            *(each["headers"] or ()),
            *letter_headers(reasons.get(row, ""), topic, each["partition"], each["offset"]),
        ]
        for row, each in zip(rows.tolist(), said, strict=True)
    ]
    kind = records.schema.field("headers").type
    return rejected.select(["key", "value", "timestamp"]).append_column("headers", pa.array(headers, kind))


def without_values(letters: pa.Table) -> pa.Table:
    """Dead letters whose values are left out, since with them they are too large: their place says where to look."""
    at = letters.schema.get_field_index("value")
    return letters.set_column(at, letters.schema.field(at), pa.nulls(letters.num_rows, letters.schema.field(at).type))
