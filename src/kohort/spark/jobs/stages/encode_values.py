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
    written = pa.RecordBatch.from_arrays(batch.columns[passed:], names=names)
    if value_encoding.deletes:
        kept = pc.invert(batch.column(DELETES))
        there = kept.to_numpy(zero_copy_only=False)
        # What has no value needn't be one that can be written.
        values = encoder_of(value_encoding).encode(written.filter(kept))
        values = values.take(pa.array(np.cumsum(there) - 1, mask=~there))
    else:
        values = encoder_of(value_encoding).encode(written)
    return pa.RecordBatch.from_arrays([*batch.columns[:passed], values], names=[*batch.schema.names[:passed], "value"])


@lru_cache(maxsize=64)
def encoder_of(value_encoding: ValueEncoding) -> Encoder:
    """The encoder of the columns, which is made once."""
    from kohort.spark.formats import encoder

    schema = spark_schema(value_encoding.schema)
    said = value_encoding
    return encoder(said.format, schema, said.avro_schema, said.registry, said.delimiter)
