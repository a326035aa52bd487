"""The stage that writes values in a format which Spark doesn't write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kohort.spark.jobs.stages.context import Stage, stage_of
from kohort.spark.jobs.stages.read_rows import spark_schema
from kohort.spark.program.internal_columns import KEY, TIMESTAMP

if TYPE_CHECKING:
    from kohort.spark.formats.registry_encoder import RegistryWriting


@dataclass(frozen=True)
class ValueEncoding:
    """A format, the columns to write (as Spark's JSON), the writer's schema for Avro, and the registered one.

    `delimiter` is between the fields of CSV.
    """

    format: str
    schema: str
    avro_schema: str | None
    registry: RegistryWriting | None = None
    delimiter: str = ","


def encode_values_stage(value_encoding: ValueEncoding) -> Stage:
    """A stage from `_key`, `_time` and then the columns, in order, to `_key`, `value`, `_time`."""
    return stage_of(lambda batches: (_encode(value_encoding, batch) for batch in batches if batch.num_rows))


def _encode(value_encoding: ValueEncoding, batch: pa.RecordBatch) -> pa.RecordBatch:
    names = spark_schema(value_encoding.schema).names
    values = _encoder(value_encoding).encode(pa.RecordBatch.from_arrays(batch.columns[2:], names=names))
    return pa.RecordBatch.from_arrays(
        [batch.column(KEY), values, batch.column(TIMESTAMP)], names=[KEY, "value", TIMESTAMP]
    )


@lru_cache(maxsize=64)
def _encoder(value_encoding: ValueEncoding) -> Any:
    from kohort.spark.formats import encoder

    schema = spark_schema(value_encoding.schema)
    said = value_encoding
    return encoder(said.format, schema, said.avro_schema, said.registry, said.delimiter)
