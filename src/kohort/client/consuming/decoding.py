"""Pieces decoded: into `Record`s, many at a time, or into Arrow columns with no Python object a record.

Small pieces are decoded one record after another; large ones as columns, once the module for it is loaded.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise, repeat, takewhile
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from kohort.client.consuming.completed_fetch import Piece, corrupt_batch
from kohort.client.errors import RecordError
from kohort.client.types import Record, TopicPartition
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import BatchHeader
from kohort.protocol.records.rows import Rows, decode_rows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Deserializer = Callable[[bytes], Any]

WORTH_COLUMNS: Final = 256
"""From so many records on, columns are quicker."""

_new_record: Final = partial(tuple.__new__, Record)


def deserialized(
    partition: TopicPartition,
    column: list[bytes | None],
    deserializer: Deserializer | None,
    what: str,
    offsets: list[int],
) -> list[Any]:
    """Returns a column's values; if the deserializer fails on one, those before it.

    Raises:
        RecordError: it fails on the first.
    """
    if deserializer is None:
        return column
    done: list[Any] = []
    add = done.append
    try:
        for value in column:
            add(None if value is None else deserializer(value))
    except Exception as error:
        if not done:
            reason = f"the {what} deserializer fails: {type(error).__name__}: {error}"
            raise RecordError(partition, offsets[0], offsets[0] + 1, reason) from error
    return done


class DecodedPiece:
    """A piece's records, and how many of them have been given.

    Args:
        offset: records before it are left out.
        columns: the module to decode columns with; without it, records are decoded one after another.
        key_deserializer, value_deserializer: called with bytes; null stays None.

    Attributes:
        rest: if a later batch than the first can't be decoded with those before it (it's corrupt, or they expand too
            far), the records end before it, and this piece begins with it.

    Raises:
        RecordError: its first batch is corrupt.
    """

    def __init__(
        self,
        partition: TopicPartition,
        piece: Piece,
        offset: int,
        columns: ModuleType | None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> None:
        self._partition = partition
        self._key_deserializer, self._value_deserializer = key_deserializer, value_deserializer
        self._source: RowSource | ColumnSource
        headers = piece.headers
        decode = RowSource if columns is None else partial(ColumnSource, columns)
        while True:
            try:
                self._source = decode(piece.data, headers)
                break
            except CorruptRecordError as error:
                place = error.position
                before = list(takewhile(lambda header: header.position != place, headers))  # noqa: B023
                if not 0 < len(before) < len(headers):
                    raise corrupt_batch(partition, error, max(offset, error.base_offset or 0), piece.data) from None
                headers = before
        self.rest = piece.part(len(headers)) if len(headers) < len(piece.headers) else None
        self.next_offset = piece.next_offset if self.rest is None else self.rest.offset
        self.row = self._source.first_row(offset)
        self.count = self._source.count

    @property
    def left(self) -> int:
        """Records that weren't given yet."""
        return self.count - self.row

    @property
    def next_to_give(self) -> int:
        """The offset of the first record that wasn't given yet, or after the piece."""
        return self._source.offset(self.row) if self.row < self.count else self.next_offset

    def take(self, most: int) -> list[Record]:
        """Returns the next records, at most so many.

        Raises:
            RecordError: a deserializer fails on the first of them. If it fails on a later one, they end before it.
        """
        start = self.row
        end = min(self.count, start + most)
        rows = self._source.lists(start, end)
        keys = deserialized(self._partition, rows.keys, self._key_deserializer, "key", rows.offsets)
        values = deserialized(self._partition, rows.values, self._value_deserializer, "value", rows.offsets)
        fields = zip(repeat(self._partition[0]), repeat(self._partition[1]), *rows[:2], keys, values, rows.headers)
        records: list[Record] = list(map(_new_record, fields))
        self.row = start + len(records)
        return records

    def take_batch(self, most: int) -> pa.RecordBatch:
        """The next records, at most so many, as Arrow columns."""
        records = self._source.batch(self.row, min(self.count, self.row + most))
        self.row += records.num_rows
        return with_place(records, self._partition)


class RowSource:
    """Records that were decoded one after another."""

    def __init__(self, data: bytes, headers: Sequence[BatchHeader]) -> None:
        self._rows = rows = Rows([], [], [], [], [])
        for header in headers:
            more = decode_rows(data, header)
            rows.offsets.extend(more.offsets)
            rows.timestamps.extend(more.timestamps)
            rows.keys.extend(more.keys)
            rows.values.extend(more.values)
            rows.headers.extend(more.headers)
        self.count = len(self._rows.offsets)

    def first_row(self, offset: int) -> int:
        return bisect_left(self._rows.offsets, offset)

    def offset(self, row: int) -> int:
        return self._rows.offsets[row]

    def lists(self, start: int, end: int) -> Rows:
        offsets, timestamps, keys, values, headers = self._rows
        return Rows(offsets[start:end], timestamps[start:end], keys[start:end], values[start:end], headers[start:end])

    def batch(self, start: int, end: int) -> pa.RecordBatch:
        import pyarrow as pa

        from kohort.protocol.records.arrow import RECORD_SCHEMA, column_of_bytes

        rows = self.lists(start, end)
        types = [field.type for field in RECORD_SCHEMA]
        columns = [
            pa.Array.from_buffers(types[0], end - start, [None, pa.py_buffer(array("q", rows.offsets))]),
            pa.Array.from_buffers(types[1], end - start, [None, pa.py_buffer(array("q", rows.timestamps))]),
            column_of_bytes(rows.keys, types[2]),
            column_of_bytes(rows.values, types[3]),
            _header_column(rows.headers, types[4]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


class ColumnSource:
    """Records that were decoded as Arrow columns."""

    def __init__(self, module: ModuleType, data: bytes, headers: Sequence[BatchHeader]) -> None:
        self.records: pa.RecordBatch = module.decode_columns(data, headers, check=False).records
        self.count: int = self.records.num_rows
        self._offsets = _longs(self.records.column(0))
        self._blobs: tuple[_Blobs, _Blobs] | None = None

    def first_row(self, offset: int) -> int:
        return int(self._offsets.searchsorted(offset))

    def offset(self, row: int) -> int:
        return int(self._offsets[row])

    def batch(self, start: int, end: int) -> pa.RecordBatch:
        return self.records.slice(start, end - start)

    def lists(self, start: int, end: int) -> Rows:
        if self._blobs is None:
            self._blobs = _Blobs(self.records.column(2)), _Blobs(self.records.column(3))
        keys, values = self._blobs
        return Rows(
            self._offsets[start:end].tolist(),
            _longs(self.records.column(1))[start:end].tolist(),
            keys.take(start, end),
            values.take(start, end),
            _headers(self.records.column(4), start, end),
        )


class _Blobs:
    """A column of bytes, from which slices are cut as Python objects."""

    def __init__(self, column: pa.Array) -> None:
        _, ends, data = column.buffers()
        import numpy as np

        self._column = column
        self._ends = np.frombuffer(ends, np.int32)
        self._data: bytes = data.to_pybytes() if data is not None else b""
        self._nulls: int = column.null_count

    def take(self, start: int, end: int) -> list[bytes | None]:
        if self._nulls == len(self._column):
            return [None] * (end - start)
        data = self._data
        places = pairwise(self._ends[start : end + 1].tolist())
        if not self._nulls:
            return [data[first:last] for first, last in places]
        valid = self._column.slice(start, end - start).is_valid().to_numpy(zero_copy_only=False).tolist()
        return [data[first:last] if there else None for (first, last), there in zip(places, valid, strict=True)]


def _longs(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    import numpy as np

    return np.frombuffer(column.buffers()[1], np.int64)


def _header_column(headers: list[list[tuple[str, bytes | None]]], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    from kohort.protocol.records.arrow import column_of_bytes

    pairs = list(chain.from_iterable(headers))
    names = column_of_bytes([name.encode() for name, _ in pairs], pa.string())
    values = column_of_bytes([value for _, value in pairs], pa.binary())
    entries = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    ends = array("i", accumulate(map(len, headers), initial=0))
    return pa.Array.from_buffers(kind, len(headers), [None, pa.py_buffer(ends)], children=[entries])


def _headers(column: pa.Array, start: int, end: int) -> list[list[tuple[str, bytes | None]]]:
    if not len(column.values):
        return [[] for _ in range(end - start)]
    part = column.slice(start, end - start)
    entries = part.flatten()
    pairs = list(zip(entries.field(0).to_pylist(), entries.field(1).to_pylist(), strict=True))
    lengths = part.value_lengths().to_pylist()
    headers = []
    at = 0
    for length in lengths:
        headers.append(pairs[at : at + length])
        at += length
    return headers


def with_place(records: pa.RecordBatch, partition: TopicPartition) -> pa.RecordBatch:
    """Records with the columns `topic` (dictionary-encoded) and `partition` (int32) before the others."""
    import pyarrow as pa

    from kohort.protocol.records.arrow import column_of_bytes

    rows = records.num_rows
    zeros = pa.py_buffer(bytes(4 * rows))
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, zeros])
    topic = pa.DictionaryArray.from_arrays(indices, column_of_bytes([partition.topic.encode()], pa.string()))
    numbers = pa.py_buffer(array("i", [partition.partition]) * rows)
    number = pa.Array.from_buffers(pa.int32(), rows, [None, numbers])
    fields = [pa.field("topic", topic.type, nullable=False), pa.field("partition", pa.int32(), nullable=False)]
    schema = pa.schema([*fields, *records.schema])
    return pa.RecordBatch.from_arrays([topic, number, *records.columns], schema=schema)
