"""What is written of an epoch: results of accepted records, and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from kohort.spark.formats import Encoder
from kohort.spark.jobs.stages.encode_values import ValueEncoding, encoder_of
from kohort.spark.letter_headers import letter_headers
from kohort.spark.program.compiled import ToTopic
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.settlement import Numbers

JSON: Final = "json"


def key_column(number: int) -> str:
    """The column of a result that has the key for an output, by its number."""
    return f"_output_{number}_key"


def value_column(number: int) -> str:
    """The column of a result that has the JSON for an output, by its number."""
    return f"_output_{number}_value"


@dataclass(frozen=True)
class OutputRecords:
    """What is to be written of results.

    Attributes:
        topics: topics, and the records that they get: `key` and `value`, one of each result, in order.
        unwritable: results that can't be written in the format, by row, and why; they have no value in `topics`.
    """

    topics: list[tuple[str, pa.Table]]
    unwritable: dict[int, str]


def output_records(queue: CompiledQueue, results: pa.Table) -> OutputRecords:
    """The records that topics get of results.

    Raises:
        RegistryError: a schema can't be registered, or looked up.
    """
    made = OutputRecords([], {})
    if not results.num_rows:
        return made
    for number, output in enumerate(queue.outputs):
        if output.format == JSON:
            values = results.column(value_column(number)).cast(pa.binary())
        else:
            values, errors = _encoded(encoder_of(_encoding(queue, output)), results.select(output.columns))
            for row, error in errors.items():
                made.unwritable.setdefault(row, f"can't be written to {output.topic} as {output.format}: {error}")
        keys = pa.nulls(results.num_rows, pa.binary())
        if output.key is not None:
            keys = results.column(key_column(number)).cast(pa.binary())
        made.topics.append((output.topic, pa.table({"key": keys, "value": values})))
    return made


def _encoding(queue: CompiledQueue, output: ToTopic) -> ValueEncoding:
    from pyspark.sql.types import StructType

    schema = StructType([queue.result[name] for name in output.columns])
    return ValueEncoding(
        output.format, schema.json(), output.avro_schema, registry=output.registry, delimiter=output.delimiter
    )


def _encoded(encoder: Encoder, rows: pa.Table) -> tuple[pa.Array, dict[int, str]]:
    """Values, and by row why there is none; what can't be written is tried by halves."""
    try:
        return encoder.encode(rows.combine_chunks()), {}
    except ValueError as error:
        if rows.num_rows == 1:
            return pa.nulls(1, pa.binary()), {0: str(error.__cause__ or error)}
    middle = rows.num_rows // 2
    first, errors = _encoded(encoder, rows.slice(0, middle))
    second, more = _encoded(encoder, rows.slice(middle))
    return pa.concat_arrays([first, second]), errors | {middle + row: why for row, why in more.items()}


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
