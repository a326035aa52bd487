"""Reads topics for Spark: plans in the driver, reads in executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kohort.spark.datasource.options import ReadOptions
from kohort.spark.datasource.planning import divide_ranges, plan_ranges
from kohort.spark.internals import arrow_schema
from kohort.spark.reading import Range, RangeReader, shared


class RangeInputPartition(InputPartition):
    """The range that a Spark task reads."""

    def __init__(self, offsets: Range) -> None:
        super().__init__(tuple(offsets))
        self.range = offsets


class TopicReader(DataSourceReader):
    """Reads ranges of topics into Arrow columns."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Looks up the offsets, and divides them.

        Raises:
            ValueError: a topic, partition or offset doesn't exist.
        """
        reader = RangeReader(self._options.config)
        try:
            ranges = plan_ranges(reader, self._options)
        finally:
            reader.close()
        divided = divide_ranges(ranges, self._options.min_partitions, self._options.max_records)
        return [RangeInputPartition(each) for each in divided]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options, self._schema)


def read_partition(partition: InputPartition, options: ReadOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The records of a task's range."""
    if not isinstance(partition, RangeInputPartition):  # Spark passes one of its own if there are none
        return
    offsets = partition.range
    # Spark accepts only batches of exactly this schema.
    arrow = arrow_schema(schema)
    for batch, types in shared(options.config).read_typed(offsets, committed=options.committed):
        rows = batch.num_rows
        columns = {
            "key": batch.column("key"),
            "value": batch.column("value"),
            "topic": pa.repeat(offsets.topic, rows),
            "partition": pa.repeat(pa.scalar(offsets.partition, pa.int32()), rows),
            "offset": batch.column("offset"),
            "timestamp": batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
            "timestampType": types,
        }
        if options.headers:
            columns["headers"] = _headers(batch.column("headers"), arrow.field("headers").type)
        yield pa.RecordBatch.from_pydict(columns, schema=arrow)


def _headers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts headers, without a copy, to a type that allows nulls."""
    entries = column.values
    pairs = pa.StructArray.from_arrays([entries.field(0), entries.field(1)], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(column.offsets, pairs, type=kind)
