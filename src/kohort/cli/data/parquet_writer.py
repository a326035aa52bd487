"""Writing records into a Parquet file."""

from __future__ import annotations

from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kohort.protocol.records.arrow import RECORD_SCHEMA

_ROW_GROUP: Final = 64 << 20
"""Bytes of records in a row group."""


class ParquetWriter:
    """Writes a Parquet file of the columns topic, partition, offset, timestamp, key, value and headers.

    It can be read once it is closed. A file without records has the columns as well.
    """

    readable = False
    SCHEMA: Final = pa.schema(
        [
            pa.field("topic", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            *RECORD_SCHEMA,
        ]
    )

    def __init__(self, file: IO[bytes], compression: str = "zstd") -> None:
        self.written = 0
        self._file = file
        self._parquet: Any = pq.ParquetWriter(file, self.SCHEMA, compression=compression)
        self._batches: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Collects the batch, and writes a row group when it is full."""
        columns = [batch.column(field.name).cast(field.type) for field in self.SCHEMA]
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self.SCHEMA))
        self._size += batch.get_total_buffer_size()
        if self._size >= _ROW_GROUP:
            self._write()

    def abandoned(self) -> bool:
        """Never: a file has no reader."""
        return False

    def close(self) -> None:
        """Writes the rest, and the footer."""
        self._write()
        self._parquet.close()  # a second time does nothing
        self.written = self._file.tell()

    def _write(self) -> None:
        if self._batches:
            self._parquet.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._size = [], 0
            self.written = self._file.tell()
