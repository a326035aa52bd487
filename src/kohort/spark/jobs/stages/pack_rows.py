"""The stage that packs rows as Arrow, so that the driver has them as they are; and what unpacks them there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.stages.context import Stage, stage_of

_SCHEMA = pa.schema([pa.field("value", pa.binary()), pa.field("partition", pa.int32())])


def pack_rows_stage() -> Stage:
    """A stage from `_partition` and then columns to `value`, these columns as a stream of Arrow's, and `partition`."""
    return stage_of(lambda batches: (packed for batch in batches if batch.num_rows for packed in _pack(batch)))


def unpack_rows(values: pa.ChunkedArray, names: list[str]) -> pa.Table:
    """The rows of some values, one at least, with names for their columns."""
    tables = [pa.ipc.open_stream(value.as_buffer()).read_all() for value in values]
    return pa.concat_tables(tables).rename_columns(names)


def _pack(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    partitions = batch.column(0)
    if partitions.null_count:
        raise ValueError(
            "for_each_batch got rows that are in no task's batch, as those of records without a key after a join with "
            "a table: leave them out in a transform before the join, or say .repartition(…) before for_each_batch"
        )
    rows = pa.RecordBatch.from_arrays(batch.columns[1:], names=batch.schema.names[1:])
    for partition in pc.unique(partitions).to_pylist():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows.filter(pc.equal(partitions, partition)))
        values = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([values, pa.array([partition], pa.int32())], schema=_SCHEMA)
