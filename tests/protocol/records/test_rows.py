"""Records one by one: what is written comes back, `columns` reads the same, and bad bytes are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, check_batch, read_header, write_header
from kohort.protocol.records.columns import decode_columns, encode_columns
from kohort.protocol.records.rows import (
    PlainRecord,
    Rows,
    decode_rows,
    encode_records,
    encode_rows,
    read_records,
    row_size,
)
from kohort.protocol.records.varint import read_varint, varint

BLOBS = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=10), BLOBS), max_size=3)
ROW = st.tuples(st.integers(0, 2**50), BLOBS, BLOBS, HEADERS)
Pair = tuple[bytes | None, bytes | None]
PAIRS: st.SearchStrategy[list[Pair]] = st.lists(st.tuples(BLOBS, BLOBS), min_size=1, max_size=50)

BASE_OFFSET = 100


def batch_of(rows: list[Any], **options: Any) -> bytearray:
    return encode_rows(*(list(column) for column in zip(*rows, strict=True)), **options)


def batch_with(payload: bytes, count: int, *, last_delta: int | None = None) -> bytes:
    """A batch with these bytes for its records, and a header that is in order."""
    data = bytearray(HEADER_SIZE) + payload
    template = read_header(encode_records([(None, None)], 5))
    last = count - 1 if last_delta is None else last_delta
    size = len(data) - LENGTH_END
    write_header(
        data,
        template._replace(base_offset=BASE_OFFSET, batch_length=size, last_offset_delta=last, record_count=count),
    )
    return bytes(data)


def record(delta: int, *, key: bytes = b"\x01", value: bytes = b"\x01", headers: bytes = b"\0", more: int = 0) -> bytes:
    """A record's bytes; `key` and `value` with their lengths, `more` is added to the record's own length."""
    content = b"\0" + varint(0) + varint(delta) + key + value + headers
    return varint(len(content) + more) + content


def decoded_columns(data: bytes) -> Rows:
    """What `columns` reads."""
    columns = decode_columns(data, check=False).records
    return Rows(
        columns.column("offset").to_pylist(),
        columns.column("timestamp").cast(pa.int64()).to_pylist(),
        columns.column("key").to_pylist(),
        columns.column("value").to_pylist(),
        [[(entry["key"], entry["value"]) for entry in row] for row in columns.column("headers").to_pylist()],
    )


# Round trips.


@given(st.lists(ROW, min_size=1, max_size=20), st.sampled_from(Compression), st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_what_is_written_comes_back_here_and_in_columns(
    rows: list[Any], compression: Compression, base_offset: int
) -> None:
    batch = batch_of(rows, compression=compression, base_offset=base_offset)
    header = check_batch(batch)
    assert header.size == len(batch)
    decoded = decode_rows(bytes(batch), header)
    assert decoded.offsets == [base_offset + index for index in range(len(rows))]
    assert list(zip(*decoded[1:], strict=True)) == rows
    assert decoded_columns(bytes(batch)) == decoded


@given(PAIRS, st.integers(0, 2**41), st.booleans(), st.booleans())
def test_pairs_come_back_as_records(pairs: list[Pair], timestamp: int, transactional: bool, control: bool) -> None:
    batch = bytes(
        encode_records(pairs, timestamp, producer_id=7, producer_epoch=3, transactional=transactional, control=control)
    )
    header = check_batch(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.record_count) == (0, 0, len(pairs))
    assert (header.base_timestamp, header.max_timestamp) == (timestamp, timestamp)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.transactional, header.control) == (transactional, control)
    assert read_records(batch, header) == [PlainRecord(at, timestamp, *pair) for at, pair in enumerate(pairs)]


@given(PAIRS, st.sampled_from(Compression))
def test_what_columns_wrote_is_read_one_by_one(pairs: list[Pair], compression: Compression) -> None:
    table = pa.table(
        {
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": pa.array([value for _, value in pairs], pa.binary()),
            "timestamp": pa.array(range(len(pairs)), pa.int64()),
        }
    )
    (batch,) = encode_columns(table, compression=compression, base_offset=7)
    records = read_records(bytes(batch), check_batch(bytes(batch)))
    assert records == [(7 + at, at, *pair) for at, pair in enumerate(pairs)]


@given(st.lists(ROW, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_no_record_is_larger_than_row_size_says(rows: list[Any]) -> None:
    most = sum(row_size(key, value, headers) for _, key, value, headers in rows)
    assert len(batch_of(rows)) - HEADER_SIZE <= most


def test_the_brokers_clock_counts_where_it_stamped_the_batch() -> None:
    batch = encode_rows([5, 6], [None] * 2, [b"x"] * 2)
    header = read_header(batch)._replace(attributes=0x08, max_timestamp=99)
    assert decode_rows(bytes(batch), header).timestamps == [99, 99]


def test_a_compacted_batch_has_gaps_or_no_records() -> None:
    gaps = batch_with(record(1) + record(4), 2, last_delta=6)
    assert [found.offset for found in read_records(gaps, check_batch(gaps))] == [BASE_OFFSET + 1, BASE_OFFSET + 4]
    empty = batch_with(b"", 0, last_delta=6)
    assert read_records(empty, check_batch(empty)) == []


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        encode_rows([], [], [])
    with pytest.raises(ValueError, match="needs a record"):
        encode_records([], 5)


# Bad bytes.


def same_as_columns(data: bytes) -> None:
    """Whether these bytes are records or not, `columns` says the same; nothing but CorruptRecordError is raised."""
    header = read_header(data)
    try:
        expected = decoded_columns(data)
    except (CorruptRecordError, UnicodeDecodeError):
        with pytest.raises(CorruptRecordError) as caught:
            decode_rows(data, header)
        assert caught.value.base_offset == header.base_offset
    else:
        rows = decode_rows(data, header)
        # A sum of base and delta beyond 64 bits isn't cut here.
        timestamps = [(timestamp + 2**63) % 2**64 - 2**63 for timestamp in rows.timestamps]
        assert rows._replace(timestamps=timestamps) == expected


@given(st.lists(ROW, min_size=1, max_size=4), st.data())
@settings(max_examples=300, deadline=None)
def test_changed_bytes_are_read_as_columns_reads_them(rows: list[Any], data: st.DataObject) -> None:
    batch = batch_of(rows)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    same_as_columns(bytes(batch))


@given(st.lists(ROW, min_size=1, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_truncated_records_are_corrupt(rows: list[Any], data: st.DataObject) -> None:
    payload = bytes(batch_of(rows)[HEADER_SIZE:])
    cut = batch_with(payload[: data.draw(st.integers(0, len(payload) - 1))], len(rows))
    with pytest.raises(CorruptRecordError):
        decode_rows(cut, read_header(cut))
    same_as_columns(cut)


@given(st.binary(max_size=80), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_as_columns_reads_them(payload: bytes, count: int, more: int) -> None:
    same_as_columns(batch_with(payload, count, last_delta=max(0, count - 1) + more))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (record(0) + record(1, more=100), "record 1 of 2"),
        (record(0) + record(1, more=-1) + b"\0", "record 1 of 2"),
        (record(0) + varint(-3) + record(1), "record 1 of 2|outside its batch"),
        (record(0) + record(1, key=varint(2**62) + b"k"), "record 1 of 2"),
        (record(0) + record(1, value=varint(-2)), "record 1 of 2"),
        (record(0) + record(1, headers=varint(-1)), "record 1 of 2"),
        (record(0) + record(1, headers=varint(2**31)), "record 1 of 2"),
        (record(0) + record(1, headers=varint(1) + varint(1) + b"n" + varint(-2)), "record 1 of 2"),
        (record(0) + record(1, headers=varint(1) + varint(1) + b"\xff" + varint(-1)), "UTF-8"),
        (record(0) + b"\xff" * 9 + b"\x7f" + b"\0" * 8, "record 1 of 2"),
        (record(0) + record(0), "out of order"),
        (record(1) + record(0), "out of order"),
        (record(0) + record(2), "outside its batch"),
        (record(-1) + record(0), "outside its batch"),
        (record(0) + record(1) + b"\0", "left over"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_records_that_do_not_add_up_are_an_error(payload: bytes, reason: str) -> None:
    batch = batch_with(payload, 2)
    for decode in (decode_rows, read_records):
        with pytest.raises(CorruptRecordError, match=reason):
            decode(batch, check_batch(batch))
    same_as_columns(batch)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_a_varint_comes_back(number: int, rest: bytes) -> None:
    encoded = varint(number)
    assert read_varint(rest + encoded + rest, len(rest)) == (number, len(rest) + len(encoded))
    with pytest.raises(IndexError):
        read_varint(encoded[:-1], 0)


@pytest.mark.parametrize("encoded", [b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"])
def test_a_varint_has_64_bits(encoded: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(encoded, 0)
