"""The stage that writes values in a format which Spark doesn't write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.stages.context import Stage, stage_of
from kohort.spark.jobs.stages.read_rows import spark_schema

DELETES: Final = "_deletes"
"""BOOLEAN: of rows that have no value."""

if TYPE_CHECKING:
    from kohort.spark.formats import Encoder
    from kohort.spark.formats.registry_encoder import RegistryWriting


@dataclass(frozen=True)
class ValueEncoding:
    """A format, the columns to write (as Spark's JSON), the writer's schema for Avro, and the registered one.

    Attributes:
        deletes: whether rows have `_deletes`.
        delimiter: between the fields of CSV.
    """

    format: str
    schema: str
    avro_schema: str | None
    deletes: bool = False
    registry: RegistryWriting | None = None
    delimiter: str = ","


def encode_values_stage(value_encoding: ValueEncoding) -> Stage:
    """A stage over any columns and, after them, those to write, in order: of these it makes `value`."""
    return stage_of(lambda batches: (_encode(value_encoding, batch) for batch in batches if batch.num_rows))


def _encode(value_encoding: ValueEncoding, batch: pa.RecordBatch) -> pa.RecordBatch:
    names = spark_schema(value_encoding.schema).names
    passed = batch.num_columns - len(names)
    rows = pa.RecordBatch.from_arrays(batch.columns[passed:], names=names)
    values = written(value_encoding, rows, pc.invert(batch.column(DELETES)) if value_encoding.deletes else None)
    return pa.RecordBatch.from_arrays([*batch.columns[:passed], values], names=[*batch.schema.names[:passed], "value"])


def written(encoding: ValueEncoding, rows: pa.RecordBatch, wanted: pa.Array | None = None) -> pa.Array:
    """Rows in a format; null for those that aren't wanted, which needn't be such that can be written."""
    encoder = encoder_of(encoding)
    if wanted is None:
        return encoder.encode(rows)
    there = wanted.to_numpy(zero_copy_only=False)
    return encoder.encode(rows.filter(wanted)).take(pa.array(np.cumsum(there) - 1, mask=~there))


@lru_cache(maxsize=64)
def encoder_of(value_encoding: ValueEncoding) -> Encoder:
    """The encoder of the columns, which is made once."""
    from kohort.spark.formats import encoder

    schema = spark_schema(value_encoding.schema)
    said = value_encoding
    return encoder(said.format, schema, said.avro_schema, said.registry, said.delimiter)
