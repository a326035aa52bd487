"""The stage that writes records' keys in a format."""

from __future__ import annotations

import pyarrow as pa

from kohort.spark.jobs.stages.context import Stage, stage_of
from kohort.spark.jobs.stages.encode_values import ValueEncoding, written
from kohort.spark.jobs.stages.read_rows import spark_schema
from kohort.spark.program.internal_columns import KEY
from kohort.spark.program.record_keys import KeyWriting


def encode_keys_stage(writing: KeyWriting) -> Stage:
    """A stage over any columns and, after them, those of the key, in order: of these it makes `_key`."""
    return stage_of(lambda batches: (encoded_keys(writing, batch) for batch in batches if batch.num_rows))


def encoded_keys(writing: KeyWriting, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The other columns, and the key of each row; null where its only column is null."""
    names = spark_schema(writing.schema).names
    passed = batch.num_columns - len(names)
    rows = pa.RecordBatch.from_arrays(batch.columns[passed:], names=names)
    encoding = ValueEncoding(writing.format, writing.schema, writing.avro_schema, registry=writing.registry)
    may_be_null = len(names) == 1 and rows.column(0).null_count
    keys = written(encoding, rows, rows.column(0).is_valid() if may_be_null else None)
    return pa.RecordBatch.from_arrays(
        [*batch.columns[:passed], keys.cast(pa.binary())], names=[*batch.schema.names[:passed], KEY]
    )
