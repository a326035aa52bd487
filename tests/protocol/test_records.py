"""Record batches: columns to bytes and back, other implementations as witnesses, corrupt input."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    Compression,
    assign_offsets,
    check_batch,
    check_batches,
    checksum,
    next_sequence,
    read_header,
    scan_batches,
    write_header,
)
from kohort.protocol.records.columns import RECORD_SCHEMA, decode_columns, encode_columns
from kohort.protocol.records.compression import CompressionError, compress, decompress
from kohort.protocol.records.partitioner import murmur2, partition_of, partitions_of
from kohort.protocol.records.trace import trace_batch

from .vectors.make_batches import as_kafka_prints, sample

VECTORS = Path(__file__).with_name("vectors")
CODECS = list(Compression)


def joined(columns: Any, **options: Any) -> bytes:
    return b"".join(encode_columns(columns, **options))


def resealed(raw: bytes | bytearray, position: int = 0) -> bytes:
    """`raw` with the checksum made right, so that a test reaches what lies behind it."""
    data = bytearray(raw)
    struct.pack_into(">I", data, position + 17, checksum(data, read_header(data, position)))
    return bytes(data)


def values(*items: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(items, pa.binary())})


# Witnesses.


@pytest.mark.parametrize("vector", json.loads((VECTORS / "batches.json").read_text()), ids=lambda v: v["compression"])
def test_batches_of_kafka_itself(vector: dict[str, str]) -> None:
    data = bytes.fromhex(vector["hex"])
    assert as_kafka_prints(data) == vector["records"]
    header = check_batch(data)
    assert Compression(header.compression).name.lower() == vector["compression"]
    assert (header.base_offset, header.partition_leader_epoch, header.producer_id) == (1000, 5, 77)
    assert (header.producer_epoch, header.base_sequence, header.transactional) == (3, 12, True)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", [DefaultRecordBatch, AioBatch])
def test_other_clients_read_our_batches(codec: Compression, reader: Any) -> None:
    table = sample(300)
    for batch in encode_columns(table, compression=codec, batch_size=20_000, base_offset=7):
        theirs = reader(bytes(batch))
        assert theirs.validate_crc()
        ours = decode_columns(batch).records.to_pylist()
        for row, record in zip(ours, theirs, strict=True):
            assert (row["offset"], row["key"], row["value"]) == (record.offset, record.key, record.value)
            assert round(row["timestamp"].timestamp() * 1000) == record.timestamp
            assert [(h["key"], h["value"]) for h in row["headers"]] == record.headers


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_the_batches_of_kafka_python(codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, True, 55, 4, 9, 1 << 20)
    rows = sample(200).to_pylist()
    for index, row in enumerate(rows):
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        assert builder.append(index, row["timestamp"], row["key"], row["value"], headers) is not None
    decoded = decode_columns(bytes(builder.build()))
    assert [(r["key"], r["value"], r["headers"]) for r in decoded.records.to_pylist()] == [
        (row["key"], row["value"], row["headers"]) for row in rows
    ]
    assert decoded.records["timestamp"].cast(pa.int64()).to_pylist() == [row["timestamp"] for row in rows]
    assert decoded.batches[0].transactional


# Round trips.

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.none() | st.binary(max_size=40),
            "value": st.none() | st.binary(max_size=300),
            "timestamp": st.integers(-1, 2**41),
            "headers": st.lists(st.fixed_dictionaries({"key": TEXT, "value": st.none() | st.binary(max_size=20)}),
                                max_size=3),
        }
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip
PLAIN_SCHEMA = pa.schema([RECORD_SCHEMA.field(n) for n in ("key", "value", "headers")]).append(
    pa.field("timestamp", pa.int64())
)


@given(rows=RECORDS, codec=st.sampled_from(CODECS), batch_size=st.sampled_from([0, 100, 500, 1 << 20]))
def test_records_survive(rows: list[dict[str, Any]], codec: Compression, batch_size: int) -> None:
    source = pa.RecordBatch.from_pylist(rows, schema=PLAIN_SCHEMA)
    batches = encode_columns(source, compression=codec, batch_size=batch_size, base_offset=10)
    data = b"".join(batches)
    assert len(check_batches(data)) == len(batches)
    decoded = decode_columns(data)
    assert decoded.records.schema == RECORD_SCHEMA
    decoded.records.validate(full=True)
    assert decoded.records["offset"].to_pylist() == list(range(10, 10 + len(rows)))
    assert decoded.records["timestamp"].cast(pa.int64()).to_pylist() == [row["timestamp"] for row in rows]
    for name in ("key", "value", "headers"):
        assert decoded.records[name].to_pylist() == [row[name] for row in rows]
    # What was decoded can be encoded again, byte for byte.
    assert joined(decoded.records, compression=codec, batch_size=batch_size, base_offset=None) == data


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1_000_001, -1, None], pa.timestamp("us")), [1000, -1, 7]),
        (pa.array([1_999_999, 0], pa.timestamp("ns", tz="Europe/Berlin")), [1, 0]),
        (pa.array([2, None], pa.timestamp("s")), [2000, 7]),
        (pa.array([5, None], pa.int32()), [5, 7]),
        (pa.nulls(2), [7, 7]),
    ],
    ids=["us", "ns", "s", "int32", "null"],
)
def test_timestamps_of_any_unit_are_cut_to_ms(column: pa.Array, expected: list[int]) -> None:
    data = joined(pa.RecordBatch.from_arrays([column], names=["timestamp"]), default_timestamp=7)
    assert decode_columns(data).records["timestamp"].cast(pa.int64()).to_pylist() == expected
    assert read_header(data).max_timestamp == max(expected)


def test_headers_that_a_slice_or_a_null_hides_do_not_count() -> None:
    kind = RECORD_SCHEMA.field("headers").type
    good = [{"key": "a", "value": b"1"}]
    loose = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
    sliced = pa.array([good, [None], good], loose)
    for column in (sliced.slice(0, 1), sliced.slice(2, 1), pa.array([good], pa.large_list(loose.value_type))):
        data = joined(pa.RecordBatch.from_arrays([column], names=["headers"]))
        assert decode_columns(data).records["headers"].to_pylist() == [good]
    entries = pa.array([{"key": None, "value": b""}, good[0]], loose.value_type)
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), entries, mask=pa.array([True, False]))
    data = joined(pa.RecordBatch.from_arrays([hidden], names=["headers"]))
    assert decode_columns(data).records["headers"].to_pylist() == [[], good]
    with pytest.raises(ValueError, match="a header must have a name"):
        encode_columns(pa.RecordBatch.from_arrays([sliced], names=["headers"]))
    view = pa.array([good, None, good], pa.list_view(loose.value_type))
    data = joined(pa.RecordBatch.from_arrays([view], names=["headers"]))
    assert decode_columns(data).records["headers"].to_pylist() == [good, [], good]
    assert kind.value_type == decode_columns(data).records["headers"].type.value_type


def test_an_arrow_array_that_lies_is_refused() -> None:
    ends = pa.py_buffer(np.array([0, 10_000_000, 5], np.int32))
    lying = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(b"hello")])
    with pytest.raises(ValueError, match="its offsets lead outside its data"):
        encode_columns(pa.RecordBatch.from_arrays([lying], names=["value"]))
    with pytest.raises(ValueError, match="its offsets lead outside its data"):
        partitions_of(lying, 3)


def test_slices_and_chunks_encode_as_what_they_show() -> None:
    table = sample(100)
    whole = decode_columns(joined(table)).records
    assert decode_columns(joined(table.slice(40, 20))).records.drop_columns("offset") == whole.slice(
        40, 20
    ).drop_columns("offset")
    assert decode_columns(joined(whole.slice(40, 20), base_offset=None)).records == whole.slice(40, 20)
    chunked = pa.concat_tables([table.slice(0, 33), table.slice(33)])
    assert joined(chunked) == joined(table)


def test_strings_timestamps_and_large_types_are_taken() -> None:
    source = pa.table(
        {
            "key": pa.array(["ä", None], pa.large_string()),
            "value": pa.array([b"1", b"2"], pa.binary_view()),
            "timestamp": pa.array([1_000_000, None], pa.timestamp("us")),
        }
    )
    decoded = decode_columns(joined(source, default_timestamp=5)).records
    assert decoded["key"].to_pylist() == ["ä".encode(), None]
    assert decoded["value"].to_pylist() == [b"1", b"2"]
    assert decoded["timestamp"].cast(pa.int64()).to_pylist() == [1000, 5]


def test_columns_may_be_missing_or_null() -> None:
    decoded = decode_columns(joined(pa.table({"key": pa.nulls(3), "value": [b"a", b"b", None]}))).records
    assert decoded["key"].null_count == 3
    assert decoded["value"].to_pylist() == [b"a", b"b", None]
    assert decoded["timestamp"].cast(pa.int64()).to_pylist() == [-1] * 3
    assert encode_columns(values()) == []


def test_null_headers_are_no_headers() -> None:
    kind = RECORD_SCHEMA.field("headers").type
    source = pa.RecordBatch.from_arrays(
        [pa.array([None, [{"key": "a", "value": b"1"}], None], kind)], names=["headers"]
    )
    assert decode_columns(joined(source)).records["headers"].to_pylist() == [[], [{"key": "a", "value": b"1"}], []]


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"val": [b""]}, {}, "columns val: a record has offset, timestamp, key, value, headers"),
        ({"value": [1]}, {}, "column value is int64"),
        ({"value": [b""]}, {"base_offset": None}, "no column offset"),
        ({"offset": [3, 3]}, {"base_offset": None}, "ascend"),
        ({"offset": [-1, 3]}, {"base_offset": None}, "not negative"),
        ({"offset": [2**63 - 1, -(2**63)]}, {"base_offset": None}, "ascend"),
        ({"value": [b"", b""]}, {"base_offset": 2**63 - 1}, "2 offsets from 9223372036854775807 go over"),
        ({"value": [b""]}, {"base_offset": -5}, "base_offset is -5"),
        ({"value": [b""]}, {"default_timestamp": 2**63}, "default_timestamp is"),
        ({"value": [b""]}, {"base_sequence": 2**31, "producer_id": 1}, "base_sequence is 2147483648"),
        ({"value": [b""]}, {"producer_epoch": 2**15}, "producer_epoch is 32768"),
        ({"value": [b""]}, {"transactional": True}, "needs a producer_id"),
        ({"value": [b""]}, {"compression": 5}, "5 is not a valid Compression"),
        ({"value": [b""]}, {"compression": Compression.GZIP, "level": 100}, "gzip has no level 100"),
        ({"value": [b""]}, {"compression": Compression.LZ4, "level": 1}, "lz4 has no level 1"),
        ({"timestamp": [True]}, {}, "column timestamp is bool"),
        ({"timestamp": ["12"]}, {}, "column timestamp is string"),
        ({"timestamp": pa.array([2**62], pa.timestamp("s"))}, {}, "column timestamp is timestamp"),
        ({"headers": [1]}, {}, "column headers is int64"),
        ({"headers": pa.array([["a"]])}, {}, "column headers is list"),
    ],
)
def test_columns_that_are_no_records(columns: dict[str, Any], options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_columns(pa.table(columns), **options)


# Batches.


def test_batches_have_the_wanted_size_and_a_large_record_its_own() -> None:
    source = values(*(b"x" * 100 for _ in range(50)), b"y" * 5000, b"z")
    batches = encode_columns(source, batch_size=1000)
    headers = [read_header(batch) for batch in batches]
    assert [header.record_count for header in headers] == [8] * 6 + [2, 1, 1]
    assert all(len(batch) <= 1000 for batch in batches[:7])
    assert [header.base_offset for header in headers] == [0, 8, 16, 24, 32, 40, 48, 50, 51]


def test_sequences_advance_and_start_again() -> None:
    source = values(*[b"v" * 50] * 10)
    batches = encode_columns(source, batch_size=200, producer_id=1, producer_epoch=0, base_sequence=2**31 - 3)
    headers = [check_batch(batch) for batch in batches]
    assert [header.base_sequence for header in headers] == [2**31 - 3, 2**31 - 1, 1, 3, 5]
    assert [header.record_count for header in headers] == [2] * 5
    assert next_sequence(2**31 - 1, 1) == 0


def test_sequences_advance_with_the_offsets_over_gaps() -> None:
    source = pa.table({"offset": [0, 5, 6, 9], "value": [b"v" * 50] * 4})
    options: dict[str, Any] = {"batch_size": 200, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    headers = [check_batch(batch) for batch in encode_columns(source, base_offset=None, **options)]
    assert [(header.base_sequence, header.last_offset_delta) for header in headers] == [(0, 5), (6, 3)]


def test_what_the_header_says_of_all_its_records() -> None:
    source = pa.table({"value": [b"a", b"b", b"c"], "timestamp": [5, 9, 7]})
    header = check_batch(encode_columns(source, leader_epoch=6, control=True)[0])
    assert (header.base_timestamp, header.max_timestamp, header.partition_leader_epoch) == (5, 9, 6)
    assert (header.control, header.transactional) == (True, False)


def test_offsets_more_than_32_bits_apart_are_in_different_batches() -> None:
    source = pa.table({"offset": [0, 2**31 - 1, 2**31], "value": [b"a", b"b", b"c"]})
    batches = encode_columns(source, base_offset=None, batch_size=1 << 20)
    assert [read_header(batch).record_count for batch in batches] == [2, 1]


def test_levels_reach_the_codec() -> None:
    source = values(json.dumps([i * i % 977 for i in range(20_000)]).encode())
    small, large = (joined(source, compression=Compression.ZSTD, level=level) for level in (19, 1))
    assert len(small) < len(large)


def test_a_place_outside_the_buffer_is_not_written_to() -> None:
    data = bytearray(joined(values(b"a")))
    with pytest.raises(ValueError, match="in 69 bytes"):
        write_header(data, read_header(data)._replace(batch_length=1000))
    with pytest.raises(ValueError, match="out of range"):
        assign_offsets(data, read_header(data)._replace(last_offset_delta=5), 2**63 - 3, 0)


def test_offset_and_epoch_are_written_in_place_and_the_checksum_stays_right() -> None:
    data = bytearray(joined(values(b"a", b"b", b"c")))
    header = check_batch(data)
    assert assign_offsets(data, header, 2**40, 9) == 2**40 + 3
    after = check_batch(data)
    assert (after.base_offset, after.last_offset, after.next_offset) == (2**40, 2**40 + 2, 2**40 + 3)
    assert after.partition_leader_epoch == 9
    assert after.crc == header.crc


def test_gaps_of_compaction_are_kept() -> None:
    source = pa.table({"offset": [5, 9, 100], "value": [b"a", b"b", b"c"]})
    data = joined(source, base_offset=None)
    header = check_batch(data)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (5, 95, 3)
    assert decode_columns(data).records["offset"].to_pylist() == [5, 9, 100]


def test_a_batch_that_compaction_has_emptied() -> None:
    data = bytearray(joined(values(b"a"))[:HEADER_SIZE])
    header = read_header(data)._replace(batch_length=HEADER_SIZE - 12, record_count=0, last_offset_delta=7)
    write_header(data, header)
    assert check_batch(data).next_offset == 8
    assert decode_columns(data).records.num_rows == 0


def test_log_append_time_is_the_time_of_every_record() -> None:
    data = bytearray(joined(sample(5)))
    header = read_header(data)
    write_header(data, header._replace(attributes=0x08, max_timestamp=77))
    assert read_header(data).log_append_time
    assert decode_columns(data).records["timestamp"].cast(pa.int64()).to_pylist() == [77] * 5
    write_header(data, header._replace(attributes=0x08, max_timestamp=-2))
    assert decode_columns(data).records["timestamp"].cast(pa.int64()).to_pylist() == [-2] * 5
    assert {record.timestamp for record in trace_batch(data, 0, 1000).records} == {-2}


def test_the_delete_horizon_is_in_the_base_timestamp() -> None:
    data = bytearray(joined(sample(1)))
    header = read_header(data)
    assert header.delete_horizon is None
    assert header._replace(attributes=0x40).delete_horizon == header.base_timestamp


def test_control_batches_are_kept_apart() -> None:
    marker = pa.table({"key": [b"\0\0\0\1"], "value": [b"\0\0\0\0\0\5"]})
    producer: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "transactional": True}
    data = (
        joined(values(b"a", b"b"), **producer)
        + joined(marker, base_offset=2, control=True, **producer)
        + joined(values(b"c"), base_offset=3)
    )
    decoded = decode_columns(data)
    assert decoded.records["value"].to_pylist() == [b"a", b"b", b"c"]
    assert decoded.records["offset"].to_pylist() == [0, 1, 3]
    assert list(decoded.rows) == [0, 2, 3]
    assert [header.base_offset for header in decoded.batches] == [0, 3]
    assert [header.base_offset for header in decoded.control] == [2]
    assert decoded.control_records["key"].to_pylist() == [b"\0\0\0\1"]


def test_a_caller_chooses_the_batches() -> None:
    data = b"".join(joined(values(name), base_offset=index) for index, name in enumerate([b"a", b"b", b"c"]))
    chosen = [header for header in scan_batches(data) if header.base_offset != 1]
    assert decode_columns(data, chosen).records["value"].to_pylist() == [b"a", b"c"]
    assert decode_columns(data, []).records.num_rows == 0


def test_batches_of_all_compressions_mix() -> None:
    data = b"".join(
        joined(values(codec.name.encode() * 20), compression=codec, base_offset=codec) for codec in Compression
    )
    assert decode_columns(data).records["value"].to_pylist() == [codec.name.encode() * 20 for codec in Compression]


@pytest.mark.parametrize("cut", [1, 11, 12, 16, 17, 40, 61, 70])
def test_a_batch_cut_off_at_the_end_is_passed_over(cut: int) -> None:
    whole = joined(values(b"whole"))
    data = whole + joined(values(b"cut off"), base_offset=1)[:cut]
    assert decode_columns(data).records["value"].to_pylist() == [b"whole"]
    with pytest.raises(CorruptRecordError) as caught:
        check_batches(data)
    assert caught.value.position == len(whole)


def test_buffers_of_any_kind() -> None:
    data = joined(sample(10), compression=Compression.LZ4)
    for kind in (bytes, bytearray, memoryview, np.frombuffer):
        buffer = kind(data, np.uint8).data if kind is np.frombuffer else kind(data)
        assert decode_columns(buffer).records.num_rows == 10


# Corruption.


def corrupted(field: str, value: int, **options: Any) -> bytes:
    data = bytearray(joined(values(b"a", b"b", b"c"), base_offset=40, **options))
    write_header(data, read_header(data)._replace(**{field: value}))
    return bytes(data)


def short_batch(attributes: int = 0, payload: int = 20) -> bytes:
    """Three records announced, in bytes that can't hold them."""
    data = bytearray(HEADER_SIZE + payload)
    write_header(data, BatchHeader(0, len(data) - 12, 0, 2, 0, attributes, 2, 0, 0, -1, -1, -1, 3, 0))
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "a header of 61 bytes, 0 left"),
        (bytes(60), "a header of 61 bytes, 60 left"),
        (joined(values(b"a"), base_offset=40)[:-1], "batch of 69 bytes, 68 left"),
        (corrupted("magic", 1), "magic 1 where 2 is expected"),
        (corrupted("attributes", 5), "unknown compression 5"),
        (corrupted("record_count", -1), "-1 records"),
        (corrupted("record_count", 4), "4 records, but the last offset delta is 2"),
        (corrupted("last_offset_delta", -1), "3 records, but the last offset delta is -1"),
        (corrupted("base_offset", 2**63 - 2), "last offset 9223372036854775808 is over"),
        (corrupted("producer_epoch", -2), "producer -1 with epoch -2"),
        (corrupted("last_offset_delta", 0), "3 records, but the last offset delta is 0"),
        (short_batch(), "3 records can't lie in 20 bytes"),
        (short_batch(attributes=Compression.ZSTD, payload=0), "3 records, but nothing after the header"),
        (corrupted("base_offset", -5), "negative base offset"),
        (corrupted("producer_id", -2), "producer -2 with epoch -1"),
        (corrupted("base_sequence", -2), "base sequence -2"),
        (corrupted("attributes", 0x10), "a transaction, but no producer id"),
        (joined(values(b"a"))[:-1] + b"\xff", "checksum is 0x"),
    ],
)
def test_headers_that_do_not_add_up(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        check_batch(data)
    assert reason in caught.value.reason


def test_bytes_behind_the_last_record_are_met_when_the_records_are_opened() -> None:
    data = corrupted("record_count", 0)
    assert check_batch(data).record_count == 0  # compaction leaves fewer records than offsets: the header is fine
    with pytest.raises(CorruptRecordError, match="bytes are left over after the last record"):
        decode_columns(data)


def test_checksums_are_verified_unless_the_caller_says_otherwise() -> None:
    data = bytearray(joined(values(b"aaaa")))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        decode_columns(data)
    assert decode_columns(data, check=False).records.num_rows == 1


def test_headers_that_belong_to_other_bytes_are_refused() -> None:
    large, small = joined(values(b"x" * 5000)), joined(values(b"small"))
    stale = list(scan_batches(large))
    for check in (True, False):
        with pytest.raises(CorruptRecordError, match="isn't in the buffer"):
            decode_columns(small, stale, check=check)
        with pytest.raises(CorruptRecordError, match="isn't in the buffer"):
            decode_columns(large, [stale[0]._replace(position=10**9)], check=check)
        with pytest.raises(CorruptRecordError, match="isn't in the buffer"):
            decode_columns(large, [stale[0]._replace(position=-1)], check=check)
    other = joined(values(b"y" * 5000))
    with pytest.raises(CorruptRecordError, match="another batch is there"):
        decode_columns(other, stale)


def test_a_batch_may_be_decoded_many_times_over() -> None:
    column = pa.array([[{"key": "k" * 5000, "value": b"v" * 5000}]], RECORD_SCHEMA.field("headers").type)
    data = joined(pa.RecordBatch.from_arrays([column], names=["headers"]))
    decoded = decode_columns(data, list(scan_batches(data)) * 50)
    assert decoded.records["headers"].to_pylist() == column.to_pylist() * 50


def test_a_caught_error_does_not_hold_the_buffer() -> None:
    for codec in (Compression.NONE, Compression.ZSTD):
        data = bytearray(joined(values(b"a", b"b"), compression=codec))
        write_header(data, read_header(data)._replace(record_count=1))
        try:
            decode_columns(data)
        except CorruptRecordError as error:
            data.extend(b"resized while the error is held")
            assert error.base_offset == 0


def test_the_inspector_and_the_columns_agree() -> None:
    draw = random.Random(11)
    sources = [joined(sample(6), compression=codec) for codec in CODECS]
    agreed = 0
    for index in range(3000):
        raw = bytearray(sources[index % len(sources)])
        at = draw.choice((20, *range(22, 27), *range(HEADER_SIZE, len(raw))))
        raw[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, raw[at] ^ 1))
        try:
            rows = decode_columns(raw, check=False).records.to_pylist()
        except (CorruptRecordError, OverflowError, ValueError) as refused:
            if isinstance(refused, CorruptRecordError) and "can't lie in" not in refused.reason:
                with pytest.raises(CorruptRecordError):
                    trace_batch(raw, 0, 1 << 20)
            continue
        if read_header(raw).control:
            continue
        agreed += 1
        traced = trace_batch(raw, 0, 1 << 20, label=False).records
        assert [(r.offset, r.key, r.value) for r in traced] == [(r["offset"], r["key"], r["value"]) for r in rows]
        assert [list(r.headers) for r in traced] == [[(h["key"], h["value"]) for h in r["headers"]] for r in rows]
    assert agreed > 1000


def test_a_count_that_the_bytes_cannot_hold_takes_no_memory() -> None:
    for codec in CODECS:
        data = bytearray(joined(values(b"a"), compression=codec))
        write_header(data, read_header(data)._replace(record_count=2**31 - 1, last_offset_delta=2**31 - 1))
        with pytest.raises(CorruptRecordError, match="2147483647 records can't lie in 8 bytes"):
            decode_columns(data)


def test_an_absurd_length_is_refused_before_anything_is_read() -> None:
    data = bytearray(joined(values(b"a"), base_offset=3))
    struct.pack_into(">i", data, 8, -5)
    with pytest.raises(CorruptRecordError) as caught:
        list(scan_batches(data))
    assert (caught.value.base_offset, caught.value.position) == (3, 0)
    assert str(caught.value) == "the batch with base offset 3 at byte 0: length -5 is too small for a batch"


def record(body: bytes, count: int = 1, last: int = 0) -> bytes:
    """A batch at offset 8 with the given bytes where its records should be."""
    data = bytearray(HEADER_SIZE) + body
    write_header(data, BatchHeader(8, len(data) - 12, 0, 2, 0, 0, last, 0, 0, -1, -1, -1, count, 0))
    return bytes(data)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("0c000000010100", None),  # the smallest record: null key, null value
        ("0e000000010100", "a record is cut off"),
        ("ffffffffffffff", "a record is cut off"),
        ("01000000010100", "a record is cut off"),
        ("0a000000010100", "headers don't fit their record"),
        ("0c000002010100", "a record's offset is outside its batch"),
        ("0c000001010100", "a record's offset is outside its batch"),
        ("0c000000030100", "a key is longer than its record"),
        ("0c000000100100", "a key is longer than its record"),
        ("0c000000010300", "a value is longer than its record"),
        ("0c000000011000", "a value is longer than its record"),
        ("0c000000010101", "headers don't fit their record"),
        ("0c000000010102", "headers don't fit their record"),
        ("0c00000001017e", "headers don't fit their record"),
        ("10000000010102" + "01" + "01", "headers don't fit their record"),  # a header without a name
        ("14000000010102" + "02ff" + "0100", "headers don't fit their record"),
        ("12000000010102" + "02ff" + "01", "the name of a header isn't UTF-8"),
        ("00" + "00" * 6, "a record's length doesn't fit its content"),
        ("0c000000010100" + "00", "bytes are left over after the last record"),
    ],
)
def test_records_that_do_not_add_up(body: str, reason: str | None) -> None:
    data = joined(values(b"before")) + record(bytes.fromhex(body))
    if reason is None:
        assert decode_columns(data).records["value"].to_pylist() == [b"before", None]
        return
    with pytest.raises(CorruptRecordError) as caught:
        decode_columns(data)
    assert reason in caught.value.reason
    assert (caught.value.base_offset, caught.value.position) == (8, len(joined(values(b"before"))))


def test_records_out_of_order() -> None:
    two = bytes.fromhex("0c000002010100" + "0c000002010100")
    with pytest.raises(CorruptRecordError, match="out of order"):
        decode_columns(record(two, count=2, last=5))


@given(st.data())
@settings(max_examples=300)
def test_flipped_bytes_are_refused_or_decode_to_something(data: st.DataObject) -> None:
    """With the checksum made right again: nothing but `CorruptRecordError`, and no reading outside."""
    codec = data.draw(st.sampled_from(CODECS))
    raw = bytearray(joined(sample(20), compression=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(16, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = decode_columns(resealed(raw))
    except CorruptRecordError as error:
        assert error.position == 0
    else:
        decoded.records.validate(full=True)


def test_kernels_stay_inside_their_arrays_whatever_they_read(tmp_path: Path) -> None:
    """In a process where numba checks every index: out of bounds is an IndexError there, and silent elsewhere."""
    program = f"""
import random
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.columns import decode_columns
draw = random.Random(3)
sources = [bytes.fromhex(text) for text in {[joined(sample(8), compression=codec).hex() for codec in (0, 4)]!r}]
pieces = [b"\\xff" * 9 + b"\\x01", b"\\xff" * 10, b"\\x80" * 9, b"\\xfe\\xff\\xff\\xff\\x0f"]
pieces += [b"\\x01", b"\\x00", b"\\x7f"]
refused = 0
for index in range(12_000):
    raw = bytearray(sources[0] if index % 20 else sources[1])
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(61, len(raw))
        piece = draw.choice(pieces)
        raw[at : at + len(piece)] = piece[: len(raw) - at]
    try:
        decode_columns(raw, check=False)
    except CorruptRecordError:
        refused += 1
assert refused > 4_000, refused
"""
    # A place of their own, as numba takes those with checks and those without for the same; compiled once all the same.
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", tmp_path)) / "with-bounds"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_mutated_batches_in_numbers() -> None:
    draw = random.Random(5)
    sources = [joined(sample(12), compression=codec, batch_size=700) for codec in CODECS]
    refused = 0
    for index in range(10_000):
        raw = bytearray(sources[index % len(sources)])
        at = draw.randrange(HEADER_SIZE, len(raw))
        raw[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, raw[at] ^ 1))
        try:
            decode_columns(raw, check=False)
        except CorruptRecordError:
            refused += 1
    assert 2000 < refused < 10_000


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_decompression_bomb_is_refused(codec: Compression) -> None:
    data = joined(values(bytes(5_000_000)), compression=codec)
    assert len(data) < 300_000
    with pytest.raises(CorruptRecordError, match=f"{codec.name.lower()} expands to more than 1000000 bytes"):
        decode_columns(data, limit=1_000_000)
    assert decode_columns(data).records["value"][0].as_py() == bytes(5_000_000)


def test_many_small_bombs_are_one_bomb() -> None:
    one = joined(values(bytes(400_000)), compression=Compression.ZSTD)
    assert decode_columns(one * 2, limit=1_000_000).records.num_rows == 2
    with pytest.raises(CorruptRecordError, match="zstd, with the batches before it, expands to more than"):
        decode_columns(one * 3, limit=1_000_000)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_takes_no_more_memory_than_its_limit(codec: Compression) -> None:
    """Measured in a process of its own, since the allocations are not Python's."""
    program = f"""
import resource
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.compression import CompressionError, compress, decompress
bomb = bytes(compress(Compression({int(codec)}), bytes(400_000_000)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(Compression({int(codec)}), bomb, 1_000_000)
except CompressionError:
    pass
else:
    raise SystemExit("not refused")
raise SystemExit(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > 50_000)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("codec", CODECS[1:])
def test_what_is_not_compressed_at_all(codec: Compression) -> None:
    for data in (b"\0", b"not compressed" * 5, b"\xff" * 40):
        if codec is Compression.SNAPPY and data == b"\0":
            assert decompress(codec, data, 1000) == b""  # the length of nothing
            continue
        with pytest.raises(CompressionError, match=codec.name.lower()):
            decompress(codec, data, 1000)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 32_768, 65_536, 200_000])
def test_compression_in_blocks(codec: Compression, size: int) -> None:
    for data in (bytes(size), random.Random(size).randbytes(size)):
        assert bytes(decompress(codec, compress(codec, data), 1 << 20)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_what_was_decompressed_is_read_by_the_same_kernels(codec: Compression) -> None:
    """Machine code for arrays that can be written is another one, and takes seconds to compile."""
    assert memoryview(decompress(codec, compress(codec, b"x"), 100)).readonly


def test_snappy_comes_bare_too() -> None:
    import cramjam

    bare = bytes(cramjam.snappy.compress_raw(b"from librdkafka" * 10))
    assert decompress(Compression.SNAPPY, bare, 1000) == b"from librdkafka" * 10


@pytest.mark.parametrize("tail", ["00", "0000ffff", "ffffffff", "00000004ffffffff"])
def test_snappy_framing_that_is_off(tail: str) -> None:
    framed = b"\x82SNAPPY\0" + bytes.fromhex("0000000100000001") + bytes.fromhex(tail)
    with pytest.raises(CompressionError, match="snappy"):
        decompress(Compression.SNAPPY, framed, 1000)


def test_levels() -> None:
    data = b"".join(b"%d late at %d;" % (i * i % 977, i % 13) for i in range(20_000))
    assert len(compress(Compression.GZIP, data, 9)) < len(compress(Compression.GZIP, data, 1))
    assert len(compress(Compression.ZSTD, data, 19)) < len(compress(Compression.ZSTD, data, 1))


# Partitions.


def test_murmur2_of_the_published_values() -> None:
    published = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert {key: murmur2(key) for key in published} == published


def test_partitions_are_those_of_another_client() -> None:
    draw = random.Random(2)
    keys = [draw.randbytes(draw.randrange(40)) for _ in range(1000)]
    expected = [(kafka_python_murmur2(key) & 0x7FFFFFFF) % 17 for key in keys]
    assert partitions_of(pa.array(keys), 17).tolist() == expected
    assert partitions_of(pa.array(keys, pa.large_binary()).slice(10, 5), 17).tolist() == expected[10:15]
    assert [(murmur2(key) & 0x7FFFFFFF) % 17 for key in keys] == expected


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(1, 1000))
def test_librdkafkas_partitions_follow_from_crc32(keys: list[bytes], partitions: int) -> None:
    expected = [zlib.crc32(key) % partitions for key in keys]
    assert partitions_of(pa.array([None, *keys]), partitions, "crc32").tolist() == [-1, *expected]
    assert [partition_of(key, partitions, "crc32") for key in keys] == expected
    assert [partition_of(key, partitions) for key in keys] == partitions_of(pa.array(keys), partitions).tolist()


def test_partitions_of_strings_and_nulls() -> None:
    assert partitions_of(pa.array(["21", None, "foobar"]), 5).tolist() == [
        (-973932308 & 0x7FFFFFFF) % 5,
        -1,
        (-790332482 & 0x7FFFFFFF) % 5,
    ]
    with pytest.raises(ValueError, match="a topic has 1 to 2147483647 partitions, not 0"):
        partitions_of(pa.array([b""]), 0)
    with pytest.raises(ValueError, match="column keys is int64"):
        partitions_of(pa.array([1]), 3)
    with pytest.raises(ValueError, match="not 2147483648"):
        partitions_of(pa.array([b""]), 2**31)
    chunked = pa.chunked_array([["21"], ["foobar"]])
    assert partitions_of(chunked, 5).tolist() == partitions_of(pa.array(["21", "foobar"]), 5).tolist()


def test_without_a_place_for_compiled_code_it_says_so_once() -> None:
    program = """
import warnings
warnings.simplefilter("always")
from unittest import mock
from numba.core import caching
with mock.patch.object(caching.CacheImpl, "_locator_classes", []), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from kohort.protocol.records.partitioner import murmur2
assert len(caught) == 1, caught
assert "NUMBA_CACHE_DIR" in str(caught[0].message)
assert murmur2(b"21") == -973932308
"""
    subprocess.run([sys.executable, "-c", program], check=True)
