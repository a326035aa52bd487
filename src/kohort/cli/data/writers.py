"""Writers of records: lines to a descriptor, or a Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Final, Protocol, TypeAlias

import pyarrow as pa

from kohort.cli.data.pipes import Interrupter, abandoned, write_all
from kohort.protocol.records.arrow import RECORD_SCHEMA

_ROW_GROUP: Final = 64 << 20
"""Bytes of records in a row group."""


Render: TypeAlias = Callable[[pa.RecordBatch], memoryview]
"""Renders records as bytes."""


class Writer(Protocol):
    """Takes batches with the columns topic, partition, and those of `RECORD_SCHEMA`. Its methods wait for the disk.

    Attributes:
        readable: whether what was written can be read at once; else only after `close`.
        written: bytes so far.
    """

    readable: bool
    written: int

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes all of a batch, or raises OSError or Interrupted."""

    def abandoned(self) -> bool:
        """Whether the reader of the output has closed it."""

    def close(self) -> None:
        """Completes the output."""


class LineWriter:
    """Writes the lines that `render` makes of a batch, at once."""

    readable = True

    def __init__(self, fd: int, render: Render, interrupter: Interrupter) -> None:
        self.written = 0
        self._fd = fd
        self._render = render
        self._interrupter = interrupter

    def write(self, batch: pa.RecordBatch) -> None:
        data = self._render(batch)
        write_all(self._fd, data, self._interrupter)
        self.written += len(data)

    def abandoned(self) -> bool:
        """Whether the pipe's reader has closed it, such as `| head`."""
        return abandoned(self._fd)

    def close(self) -> None:
        """Does nothing; the descriptor is its owner's."""


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
        import pyarrow.parquet as pq

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
