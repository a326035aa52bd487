"""The records of an aggregate's outputs that aren't JSON under the store's keys, made of what the store holds."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import key_texts
from kohort.spark.jobs.errors import StoredValueError
from kohort.spark.jobs.output_values import output_values, window_starts
from kohort.spark.jobs.outputs import GroupOutput

if TYPE_CHECKING:
    from kohort.spark.jobs.stages.encode_values import ValueEncoding


def group_records(output: GroupOutput, keys: pa.ChunkedArray, values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The keys and values (binary) of the topic's records.

    Args:
        keys, values: as in the store; a null value gives a null value, which deletes.

    Raises:
        StoredValueError: they can't be read.
    """
    columns = _columns(output, keys, values)
    key: Any = keys
    if output.key is not None:
        texts = key_texts(output.key, [columns[name] for name in output.key], plain_decimals=output.plain_decimals)
        key = texts.cast(pa.binary())
    if output.format == "json":
        return key, output_values(keys, values, output.end)
    from kohort.spark.jobs.stages.encode_values import written

    some = pa.RecordBatch.from_arrays([columns[name] for name in output.columns], names=list(output.columns))
    return key, written(_encoding(output), some, one_array(pc.is_valid(values)))


def _columns(output: GroupOutput, keys: pa.ChunkedArray, values: pa.ChunkedArray) -> dict[str, pa.Array]:
    """All columns of the outputs, by name. Of what is deleted those of the key alone aren't null."""
    objects = output_values(keys, pc.fill_null(values, b'{"state":{}}'))
    objects, special = _without_special(objects, _fractions(output.schema))
    decoded = _decoder(output.schema).decode(objects)
    if decoded.errors:
        row, error = decoded.errors[0]
        raise StoredValueError(f"for topic {output.topic}: {objects[row].as_py()!r} of the store: {error}")
    batch = decoded.columns
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, rows, number in special:
        columns[name] = pc.if_else(rows, pa.scalar(number, columns[name].type), columns[name])
    if output.windowed:
        starts = window_starts(one_array(keys))
        columns["window"] = _times(starts)
        if output.end is not None:
            columns[output.end.name] = _times(pc.add(starts, output.end.size))
    return columns


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _without_special(objects: pa.Array, names: tuple[str, ...]) -> tuple[pa.Array, list[tuple[str, pa.Array, float]]]:
    """Objects with null for what is no number in JSON: columns, and in which rows they are which one.

    Quotes within texts are escaped, so a field is found wherever its name and value are.
    """
    found = []
    for name in names:
        field = json.dumps(name, ensure_ascii=False)
        for text in ("NaN", "Infinity", "-Infinity"):
            rows = pc.match_substring(objects, f'{field}:"{text}"')
            if rows.true_count:
                objects = pc.replace_substring(objects, f'{field}:"{text}"', f"{field}:null")
                found.append((name, rows, float(text)))
    return objects, found


@lru_cache(maxsize=64)
def _fractions(schema: str) -> tuple[str, ...]:
    """The columns of type DOUBLE or FLOAT, but for those of which a field within another column has the name."""
    fields = json.loads(schema)["fields"]
    names = [field["name"] for field in fields if field["type"] in ("double", "float")]
    return tuple(name for name in names if schema.count(json.dumps(name)) == 1)


def _times(millis: pa.Array) -> pa.Array:
    return millis.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))


@lru_cache(maxsize=64)
def _decoder(schema: str) -> Any:
    from kohort.spark.formats import decoder
    from kohort.spark.jobs.stages.read_rows import spark_schema

    return decoder("json", spark_schema(schema))


@lru_cache(maxsize=64)
def _encoding(output: GroupOutput) -> ValueEncoding:
    from pyspark.sql.types import StructField, StructType, TimestampType

    from kohort.spark.jobs.stages.encode_values import ValueEncoding
    from kohort.spark.jobs.stages.read_rows import spark_schema

    schema = spark_schema(output.schema)
    times = {"window", output.end.name if output.end is not None else "window"} - set(schema.names)
    fields = [StructField(name, TimestampType()) if name in times else schema[name] for name in output.columns]
    return ValueEncoding(
        output.format, StructType(fields).json(), output.avro_schema, registry=output.registry,
        delimiter=output.delimiter,
    )  # fmt: skip
