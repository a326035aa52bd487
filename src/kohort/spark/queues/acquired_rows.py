"""Acquired records as rows, and which of them can't be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from kohort.spark.formats import decoder
from kohort.spark.internals import arrow_schema
from kohort.spark.program.internal_columns import HEADERS, OFFSET, PARTITION
from kohort.spark.program.queues import DELIVERY_COUNT
from kohort.spark.queues.compiling import CompiledQueue

_NO_VALUE: Final = "the record has no value"


class RowDecoder:
    """Decodes the records of a queue."""

    def __init__(self, queue: CompiledQueue) -> None:
        from pyspark.sql.types import StructType

        source = queue.source
        self._source = source
        self._schema = arrow_schema(queue.rows)
        values = StructType([field for field in source.schema.fields if field.name not in source.added])
        self._decoder = decoder(source.format, values, source.avro_schema, source.times, source.registry, source.csv)

    def decode(self, records: pa.Table) -> tuple[pa.Table, Mapping[int, str]]:
        """The rows of the records that can be read, in their order; and the others by row, with why they can't.

        Args:
            records: as `ShareConsumer.batches` has them.
        """
        records = records.combine_chunks()
        values = records.column("value").combine_chunks()
        bad = dict.fromkeys(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist(), _NO_VALUE)
        decoded = self._decoder.decode(values)
        good = np.arange(len(values)) if decoded.good is None else decoded.good.to_numpy()
        bad.update({row: why for row, why in decoded.errors if row not in bad})
        kept = ~np.isin(good, list(bad))
        columns = decoded.columns.filter(pa.array(kept))
        records = records.take(pa.array(good[kept]))
        found = dict(zip(columns.schema.names, columns.columns, strict=True))
        for each in self._source.derived:
            times = records.column("timestamp").combine_chunks().cast(pa.int64())
            found[each.name] = each.of(found[each.column] if each.function else times)
        if self._source.headers:
            found[HEADERS] = records.column("headers").combine_chunks()
        found[DELIVERY_COUNT] = records.column("delivery_count").combine_chunks()
        found[PARTITION] = records.column("partition").combine_chunks()
        found[OFFSET] = records.column("offset").combine_chunks()
        arrays = [found[field.name].cast(field.type) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema), bad
