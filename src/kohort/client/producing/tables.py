"""Arrow tables to encoded batches, by partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.column_codec import columns_if_loaded
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.partitioners import TopicRoutes
from kohort.client.producing.settings import ProducerSettings
from kohort.plurals import several
from kohort.protocol.records.arrow import cast_column
from kohort.protocol.records.batch import assign_offsets, read_header
from kohort.protocol.records.rows import encode_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS: Final = ("key", "value", "timestamp", "headers", "partition")
_PIECE: Final = 512 * 1024
"""Bytes for each partition that are encoded at once: larger requests take brokers longer (measured), and nothing is
sent while they are made."""

_MOST_PARTITIONS: Final = 8
"""More partitions than that don't make a piece larger: encoding it blocks the event loop, for some 10 ms."""

_MOST_ROWS: Final = 65_536

_SHOWN: Final = 80
"""So much of a key is in a message."""
_ROOM: Final = 256
"""Bytes that a batch of a row takes beside keys, values and headers, at most."""

_FEW: Final = 4096
"""Rows for which the column codec needn't be loaded: that takes as long as half a million rows in plain Python."""


class EncodedRows(NamedTuple):
    """A batch's bytes, the number of records in it, and where it goes."""

    queue: PartitionQueue
    data: memoryview
    records: int


def spread_of(table: pa.Table, routes: TopicRoutes, partition: int | None) -> int:
    """Returns over how many partitions rows are spread at a time."""
    together = partition is not None or not {"key", "partition"}.intersection(table.schema.names)
    return 1 if together else len(routes.queues)


def check_table(table: pa.Table | pa.RecordBatch) -> pa.Table:
    """Returns the table, with its columns checked.

    Raises:
        ValueError: a column that a record doesn't have.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    unknown = [name for name in table.schema.names if name not in _COLUMNS]
    if unknown:
        raise ValueError(f"columns {', '.join(unknown)}: a table to send has {', '.join(_COLUMNS)}, all optional")
    return table


def is_small(table: pa.Table, settings: ProducerSettings) -> bool:
    """Whether `encode_table` is quick without the column codec."""
    return (
        table.num_rows <= _FEW
        and table.nbytes <= settings.max_request_size // 2
        and {"key", "value", "partition"}.issuperset(table.schema.names)
    )


def pieces_of(table: pa.Table, partitions: int) -> Iterator[pa.RecordBatch]:
    """Yields slices of a few MiB at most, in order, for rows that go to so many partitions."""
    size = _PIECE * min(partitions, _MOST_PARTITIONS)
    rows = max(1, min(_MOST_ROWS, table.num_rows * size // max(1, table.nbytes)))
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield batch


def check_row_sizes(table: pa.Table, settings: ProducerSettings) -> None:
    """Encodes rows that may be too large, each by itself, so that they are found before a piece is sent.

    What is smaller than a request in Arrow, with some room for what a codec adds, needn't be looked at. The column
    codec must be loaded.

    Raises:
        ValueError: a row is larger than `max_request_size`, or a column has the wrong type.
    """
    left = table.drop_columns([name for name in ("partition",) if name in table.schema.names]).to_batches()
    while left:
        rows = left.pop()
        if rows.nbytes * 7 // 6 + _ROOM <= settings.max_request_size or not rows.num_rows:
            continue
        if rows.num_rows == 1:
            _encoded(rows, settings, 0)
        else:
            middle = rows.num_rows // 2
            left += [rows.slice(middle), rows.slice(0, middle)]


def encode_table(
    piece: pa.RecordBatch, routes: TopicRoutes, partition: int | None, settings: ProducerSettings, now_ms: int
) -> list[EncodedRows]:
    """Returns a piece's rows as batches.

    Rows of a partition keep their order. Where neither `partition`, nor the column "partition", nor a key says where
    a row goes, batches of such rows take turns. The column codec must be loaded, unless the table `is_small`.

    Args:
        piece: rows.
        partition: for all rows; None: by column, key, or any.
        now_ms: ms since 1970, for rows without a timestamp.

    Raises:
        ValueError: a column of the wrong type, a partition that doesn't exist, a row larger than `max_request_size`.
    """
    count = len(routes.queues)
    if partition is not None:
        targets = np.full(piece.num_rows, partition, np.int32)
    elif "partition" in piece.schema.names:
        targets = _partition_column(piece.column("partition"))
        _route_keys(targets, piece, routes)
    else:
        # One partition keeps the order of all rows, with keys and without.
        targets = np.full(piece.num_rows, 0 if count == 1 else -1, np.int32)
        _route_keys(targets, piece, routes)
    if "partition" in piece.schema.names:
        piece = piece.drop_columns(["partition"])
    largest = int(targets.max(initial=-1))
    if largest >= count:
        raise ValueError(
            f"topic {routes.topic} has {several(count, 'partition')}, so there is none with number {largest}"
        )
    out: list[EncodedRows] = []
    for target, rows in _by_target(piece, targets):
        for data in _encoded(rows, settings, now_ms):
            queue = routes.queues[target] if target >= 0 else routes.stick(settings.batch_size)
            header = read_header(data)
            assign_offsets(data, header, 0, -1)
            out.append(EncodedRows(queue, data, header.record_count))
    return out


def _encoded(rows: pa.RecordBatch, settings: ProducerSettings, now_ms: int) -> list[memoryview]:
    columns = columns_if_loaded()
    batches = (
        [_encoded_one_by_one(rows, settings, now_ms)]
        if columns is None
        else columns.encode_columns(
            rows, batch_size=settings.max_request_size, compression=settings.compression,
            level=settings.compression_level, default_timestamp=now_ms,
        )
    )  # fmt: skip
    for batch in batches:
        if len(batch) > settings.max_request_size:
            raise ValueError(
                f"a row{_key_of(rows)} takes {len(batch)} bytes, over max_request_size={settings.max_request_size}"
            )
    return batches


def _key_of(rows: pa.RecordBatch) -> str:
    """Of a single row, which it is."""
    if rows.num_rows != 1 or "key" not in rows.schema.names or (key := rows.column("key")[0].as_py()) is None:
        return ""
    return f" with the key {key[:_SHOWN]!r}{'…' if len(key) > _SHOWN else ''}"


def _encoded_one_by_one(rows: pa.RecordBatch, settings: ProducerSettings, now_ms: int) -> memoryview:
    count = rows.num_rows
    keys, values = (
        _bytes(rows.column(name), name) if name in rows.schema.names else [None] * count for name in ("key", "value")
    )
    encoded = encode_rows(
        [now_ms] * count, keys, values, compression=settings.compression, level=settings.compression_level
    )
    return memoryview(encoded)


def _partition_column(column: pa.Array) -> NDArray[np.int32]:
    """The column, with -1 for null."""
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ValueError(f"column partition is {column.type}, not integers")
    if column.null_count < len(column) and pc.min(column).as_py() < 0:
        raise ValueError("column partition: partitions aren't negative")
    numbers = cast_column(column, pa.int32(), "partition").fill_null(-1)
    return np.array(numbers.to_numpy(zero_copy_only=False), np.int32)


def _route_keys(targets: NDArray[np.int32], piece: pa.RecordBatch, routes: TopicRoutes) -> None:
    """Fills in the partitions of rows with keys that have none yet."""
    if "key" not in piece.schema.names or pa.types.is_null(piece.column("key").type):
        return
    keys = piece.column("key")
    open_rows = targets < 0
    if not open_rows.any():
        return
    hashed: NDArray[np.int32]
    if routes.compiled and columns_if_loaded() is not None:
        from kohort.protocol.records.partitioner import partitions_of

        hashed = partitions_of(keys, len(routes.queues))
    else:
        numbers: Callable[[Any], int] = routes.number
        hashed = np.array([-1 if key is None else numbers(key) for key in _bytes(keys, "key")], np.int32)
    np.copyto(targets, hashed, where=open_rows)


def _bytes(column: pa.Array, name: str) -> list[bytes | None]:
    return list(cast_column(column, pa.binary(), name).to_pylist())


def _by_target(piece: pa.RecordBatch, targets: NDArray[np.int32]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of each target, in their order."""
    first = int(targets[0])
    if (targets == first).all():
        yield first, piece
        return
    order = np.argsort(targets, kind="stable")
    piece = piece.take(pa.array(order))
    sorted_targets = targets[order]
    starts = np.flatnonzero(np.diff(sorted_targets, prepend=sorted_targets[0] - 1))
    ends = [*starts[1:].tolist(), len(order)]
    for start, end in zip(starts.tolist(), ends, strict=True):
        yield int(sorted_targets[start]), piece.slice(start, end - start)
