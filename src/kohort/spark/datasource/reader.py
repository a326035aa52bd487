"""Reads a topic for Spark: plans in the driver, reads in the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kohort.spark.datasource.options import ReadOptions
from kohort.spark.datasource.planning import divided, planned
from kohort.spark.internals import arrow_schema
from kohort.spark.reading import Range, RangeReader, shared

__all__ = ["TopicReader"]


class RangePartition(InputPartition):
    """What one task of Spark reads."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(tuple(wanted))
        self.wanted = wanted


class TopicReader(DataSourceReader):
    """Reads ranges of a topic, straight into Arrow columns.

    Args:
        options: what to read.
        schema: the columns.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Look up the offsets, and divide them.

        Raises:
            ValueError: a topic, partition or offset that there isn't.
        """
        reader = RangeReader(self._options.config)
        try:
            ranges = planned(reader, self._options)
        finally:
            reader.close()
        parts = divided(ranges, self._options.min_partitions, self._options.max_records)
        return [RangePartition(each) for each in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        if not isinstance(partition, RangePartition):  # Spark's, if there are none to read
            return
        wanted = partition.wanted
        # Spark takes batches of exactly this schema.
        schema = arrow_schema(self._schema)
        batches = shared(self._options.config).read_typed(wanted, committed=self._options.committed)
        for batch, types in batches:
            rows = batch.num_rows
            columns = {
                "key": batch.column("key"),
                "value": batch.column("value"),
                "topic": pa.repeat(wanted.topic, rows),
                "partition": pa.repeat(pa.scalar(wanted.partition, pa.int32()), rows),
                "offset": batch.column("offset"),
                "timestamp": batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
                "timestampType": types,
            }
            if self._options.headers:
                columns["headers"] = _headers(batch.column("headers"), schema.field("headers").type)
            yield pa.RecordBatch.from_pydict(columns, schema=schema)


def _headers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same in a type that allows nulls where there are none, without a copy."""
    entries = column.values
    pairs = pa.StructArray.from_arrays([entries.field(0), entries.field(1)], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(column.offsets, pairs, type=kind)
