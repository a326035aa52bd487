"""Records one by one: what is written comes back, `columns` reads the same, and bad bytes are told."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, Compression, check_batch, read_header
from kohort.protocol.records.columns import decode_columns, encode_columns
from kohort.protocol.records.rows import Rows, decode_rows, encode_rows, row_size

BLOBS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=10), BLOBS), max_size=3)
ROW = st.tuples(st.integers(0, 2**50), BLOBS, BLOBS, HEADERS)


def batch_of(rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], **options: object):  # type: ignore[no-untyped-def]
    return encode_rows(*(list(column) for column in zip(*rows, strict=True)), **options)  # type: ignore[arg-type]


@given(st.lists(ROW, min_size=1, max_size=20), st.sampled_from(Compression), st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_what_is_written_comes_back_here_and_in_columns(rows, compression, base_offset) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(rows, compression=compression, base_offset=base_offset)
    header = check_batch(batch)
    assert header.size == len(batch)
    decoded = decode_rows(bytes(batch), header)
    assert decoded.offsets == [base_offset + index for index in range(len(rows))]
    assert list(zip(decoded.timestamps, decoded.keys, decoded.values, decoded.headers, strict=True)) == rows
    columns = decode_columns(bytes(batch)).records
    assert columns.column("value").to_pylist() == decoded.values
    assert [
        [(entry["key"], entry["value"]) for entry in headers] for headers in columns.column("headers").to_pylist()
    ] == decoded.headers


@given(st.lists(ROW, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_no_record_is_larger_than_row_size_says(rows) -> None:  # type: ignore[no-untyped-def]
    most = sum(row_size(key, value, headers) for _, key, value, headers in rows)
    assert len(batch_of(rows)) - HEADER_SIZE <= most


def test_reads_what_columns_write() -> None:
    table = pa.table({"key": [b"a", None], "value": [None, b"b"], "timestamp": [5, 3]})
    (batch,) = encode_columns(table, base_offset=7)
    assert decode_rows(bytes(batch), read_header(batch)) == Rows([7, 8], [5, 3], [b"a", None], [None, b"b"], [[], []])


def test_the_brokers_clock_counts_where_it_stamped_the_batch() -> None:
    batch = encode_rows([5, 6], [None] * 2, [b"x"] * 2)
    header = read_header(batch)._replace(attributes=0x08, max_timestamp=99)
    assert decode_rows(bytes(batch), header).timestamps == [99, 99]


@given(st.lists(ROW, min_size=1, max_size=3), st.data())
@settings(max_examples=200, deadline=None)
def test_bad_bytes_are_corrupt_and_nothing_else(rows, data) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(rows)
    header = read_header(batch)
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_rows(bytes(batch), header)
    except CorruptRecordError as error:
        assert error.base_offset == 0
    else:
        assert len(decoded.offsets) == len(rows)  # the change made other bytes of a value, not other records


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        encode_rows([], [], [])
