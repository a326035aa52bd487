"""Where records that were read go: lines on a descriptor, or a Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Final, Protocol

import pyarrow as pa

from kohort.cli.data.pipes import Interrupter, abandoned, write_all
from kohort.protocol.records.arrow import RECORD_SCHEMA

__all__ = ["LineWriter", "ParquetWriter", "Writer"]

_ROW_GROUP: Final = 64 << 20
"""Bytes of records that are gathered for a row group."""


class Writer(Protocol):
    """Takes batches with the columns topic, partition, and those of `RECORD_SCHEMA`. Its methods wait for the disk.

    Attributes:
        readable: whether what was written can be read from then on; else only after `close`.
        written: bytes so far.
    """

    readable: bool
    written: int

    def write(self, batch: pa.RecordBatch) -> None:
        """Write all of a batch, or raise OSError or Interrupted."""

    def abandoned(self) -> bool:
        """Whether nobody will read what is written from now on."""

    def close(self) -> None:
        """Bring to an end what was begun."""


class LineWriter:
    """Writes what `render` makes of a batch, at once."""

    readable = True

    def __init__(self, fd: int, render: Callable[[pa.RecordBatch], memoryview], interrupter: Interrupter) -> None:
        self.written = 0
        self._fd = fd
        self._render = render
        self._interrupter = interrupter

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the lines."""
        data = self._render(batch)
        write_all(self._fd, data, self._interrupter)
        self.written += len(data)

    def abandoned(self) -> bool:
        """Whether the pipe's reader has gone: `| head` has seen enough."""
        return abandoned(self._fd)

    def close(self) -> None:
        """Nothing is left to do; the descriptor is its owner's."""


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
        self._gathered: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Gather the batch, and write what was gathered if that is enough."""
        columns = [batch.column(field.name).cast(field.type) for field in self.SCHEMA]
        self._gathered.append(pa.RecordBatch.from_arrays(columns, schema=self.SCHEMA))
        self._size += batch.get_total_buffer_size()
        if self._size >= _ROW_GROUP:
            self._write()

    def abandoned(self) -> bool:
        """A file has no reader to lose."""
        return False

    def close(self) -> None:
        """Write the rest, and the end that makes the file one."""
        self._write()
        self._parquet.close()  # a second time does nothing
        self.written = self._file.tell()

    def _write(self) -> None:
        if self._gathered:
            self._parquet.write_table(pa.Table.from_batches(self._gathered))
            self._gathered, self._size = [], 0
            self.written = self._file.tell()
