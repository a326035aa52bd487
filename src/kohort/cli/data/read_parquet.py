"""Reading Parquet: a record a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kohort.cli.data.column_block import ColumnBlock, column_block
from kohort.cli.data.columns import as_bytes
from kohort.cli.data.errors import DataError, no_key
from kohort.cli.data.read_csv import before_null, rows_as_json
from kohort.cli.data.source import Source

_ROWS: Final = 16_384


def read_parquet(source: Source, key: str | None = None, *, null_keys: bool = False) -> Iterator[ColumnBlock]:
    """The records of a file that `kohort consume --format parquet` wrote; of any other file, each row as a JSON object.

    The former has a column "value" and optionally "key", "timestamp" and "headers". The column `key` is the key.

    Args:
        null_keys: whether the column `key` may have nulls; what `kohort consume` wrote may anyway.

    Raises:
        DataError: it isn't a Parquet file, or a pipe; there is no column `key`, or it has a null and mustn't.
    """
    if source.size is None:
        raise DataError(f"{source.name}: Parquet is read from its end, so it must be a file")
    try:
        with pa.OSFile(f"/dev/fd/{source.fd}") as file, pq.ParquetFile(file) as parquet:
            names = parquet.schema_arrow.names
            if key is not None and key not in names:
                raise DataError(f"{source.name}: there is no column {key!r}; there are {', '.join(names)}")
            total, done = max(1, parquet.metadata.num_rows), 0
            for rows in parquet.iter_batches(_ROWS):
                whole = null_keys or key is None
                keyed = rows if whole else rows.slice(0, before_null(rows.column(key)))
                done += keyed.num_rows
                source.position = source.size * done // total
                if keyed.num_rows:
                    yield _records(keyed, key or "key") if "value" in names else _objects(keyed, key)
                if keyed.num_rows < rows.num_rows:
                    raise no_key(f"{source.name}, row {done + 1}", str(key), "null")
    except pa.ArrowException as error:
        raise DataError(f"{source.name}: {error}") from None


def _objects(rows: pa.RecordBatch, key: str | None) -> ColumnBlock:
    return rows_as_json(rows, None if key is None else rows.column(key))


def _records(rows: pa.RecordBatch, key: str) -> ColumnBlock:
    columns = {name: rows.column(name) for name in ("timestamp", "headers") if name in rows.schema.names}
    keys = as_bytes(rows.column(key)) if key in rows.schema.names else None
    return column_block(key=keys, value=as_bytes(rows.column("value")), **columns)
