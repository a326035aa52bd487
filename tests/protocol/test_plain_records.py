from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import Compression, check_batch
from kohort.protocol.records.columns import decode_columns, encode_columns
from kohort.protocol.records.plain import encode_records, read_records

NULLABLE = st.none() | st.binary(max_size=300)
PAIRS = st.lists(st.tuples(NULLABLE, NULLABLE), min_size=1, max_size=50)


@given(PAIRS, st.integers(0, 2**41))
def test_columns_read_what_is_written_one_by_one(
    pairs: list[tuple[bytes | None, bytes | None]], timestamp: int
) -> None:
    batch = bytes(encode_records(pairs, timestamp))
    columns = decode_columns(batch).records
    assert list(zip(columns["key"].to_pylist(), columns["value"].to_pylist(), strict=True)) == pairs
    assert read_records(batch, check_batch(batch)) == [(at, timestamp, *pair) for at, pair in enumerate(pairs)]


@given(PAIRS, st.sampled_from(Compression))
def test_what_columns_wrote_is_read_one_by_one(
    pairs: list[tuple[bytes | None, bytes | None]], compression: Compression
) -> None:
    table = pa.table(
        {
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": pa.array([value for _, value in pairs], pa.binary()),
            "timestamp": pa.array(range(len(pairs)), pa.int64()),
        }
    )
    (batch,) = encode_columns(table, compression=compression)
    records = read_records(bytes(batch), check_batch(bytes(batch)))
    assert records == [(at, at, *pair) for at, pair in enumerate(pairs)]


@given(PAIRS, st.data())
def test_records_that_do_not_add_up_are_an_error(
    pairs: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    batch = encode_records(pairs, 5)
    header = check_batch(bytes(batch))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        records = read_records(bytes(batch), header)
    except CorruptRecordError:
        return
    assert len(records) == len(pairs)


def test_a_cut_off_batch_names_its_record() -> None:
    batch = encode_records([(b"k", b"v"), (b"k", b"v")], 5)
    header = check_batch(bytes(batch))
    batch[70] = 0x7F  # the second record's length
    with pytest.raises(CorruptRecordError, match="record 1 of 2"):
        read_records(bytes(batch), header)
