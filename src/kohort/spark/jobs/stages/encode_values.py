"""The stage that writes values in a format which Spark doesn't write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from kohort.spark.jobs.stages.common import KEY, TIMESTAMP, settled
from kohort.spark.jobs.stages.read_rows import Stage, spark_schema


@dataclass(frozen=True)
class Encoding:
    """A format, the columns to write (as Spark's JSON), and the writer's schema for Avro."""

    format: str
    schema: str
    avro_schema: str | None


def encode_stage(encoding: Encoding) -> Stage:
    """A stage from `_key`, `_time` and then the columns, in order, to `_key`, `value`, `_time`."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(_encode(encoding, batch) for batch in batches if batch.num_rows)

    return stage


def _encode(encoding: Encoding, batch: pa.RecordBatch) -> pa.RecordBatch:
    names = spark_schema(encoding.schema).names
    values = _encoder(encoding).encode(pa.RecordBatch.from_arrays(batch.columns[2:], names=names))
    return pa.RecordBatch.from_arrays(
        [batch.column(KEY), values, batch.column(TIMESTAMP)], names=[KEY, "value", TIMESTAMP]
    )


@lru_cache(maxsize=64)
def _encoder(encoding: Encoding) -> Any:
    from kohort.spark.formats import encoder

    return encoder(encoding.format, spark_schema(encoding.schema), encoding.avro_schema)
