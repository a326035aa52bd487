"""Which records of a response are ours, and what of it is a gap, corrupt or missing."""

from __future__ import annotations

from types import ModuleType

import pytest

from kohort.client.errors import SharedRecordError
from kohort.client.sharing.acknowledgements import OffsetSpan
from kohort.client.sharing.acquired import (
    Acquired,
    AcquiredRange,
    DecodedRecords,
    read_acquired,
    without_first_batch,
)
from kohort.client.types import ShareRecord, TopicPartition
from kohort.protocol.records import columns
from tests.client.consuming.test_completed_fetch import data, marker

T0 = TopicPartition("t", 0)
WAYS = pytest.mark.parametrize("module", [None, columns], ids=["rows", "columns"])


def read(records: bytes, *ranges: tuple[int, int, int], piece_bytes: int = 10_000, check: bool = True) -> Acquired:
    return read_acquired(T0, records, [AcquiredRange(*each) for each in ranges], check=check, piece_bytes=piece_bytes)


def given(acquired: Acquired, module: ModuleType | None) -> list[tuple[int, int]]:
    """Offsets and delivery counts."""
    found: list[ShareRecord] = []
    for piece in acquired.pieces:
        decoded = DecodedRecords(T0, piece, module)
        while decoded.left:
            found += decoded.take(2)
    return [(record.offset, record.delivery_count) for record in found]


def gaps(acquired: Acquired, module: ModuleType | None) -> list[OffsetSpan]:
    return [gap for piece in acquired.pieces for gap in DecodedRecords(T0, piece, module).gaps]


@WAYS
@pytest.mark.parametrize("piece_bytes", [1, 10_000])
def test_offsets_that_are_locked_for_others_are_left_out(module: ModuleType | None, piece_bytes: int) -> None:
    records = data(0, b"0", b"1", b"2", b"3") + data(4, b"4", b"5")
    found = read(records, (1, 2, 1), (4, 5, 3), piece_bytes=piece_bytes)
    assert given(found, module) == [(1, 1), (2, 1), (4, 3), (5, 3)]
    assert gaps(found, module) == [] and not found.missing and found.corrupt is None


@WAYS
def test_a_batch_of_arrow_columns_has_the_delivery_count(module: ModuleType | None) -> None:
    found = read(data(10, b"a", b"b", b"c"), (11, 12, 4))
    decoded = DecodedRecords(T0, found.pieces[0], module)
    batch, span = decoded.take_batch(10)
    assert batch.schema.names == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        "value",
        "headers",
        "delivery_count",
    ]
    assert batch.column("offset").to_pylist() == [11, 12] and batch.column("delivery_count").to_pylist() == [4, 4]
    assert batch.column("value").to_pylist() == [b"b", b"c"] and span == (11, 12) and not decoded.left


@WAYS
def test_offsets_without_a_record_are_gaps(module: ModuleType | None) -> None:
    """Offsets 2 and 3 were compacted away; 6 is a control record."""
    records = data(0, b"0", b"1") + data(4, b"4", b"5") + marker(6, 9, commit=True)
    found = read(records, (0, 6, 1))
    assert given(found, module) == [(0, 1), (1, 1), (4, 1), (5, 1)]
    assert gaps(found, module) == [(2, 3), (6, 6)]
    only_marker = read(marker(6, 9, commit=True), (6, 6, 1))
    assert given(only_marker, module) == [] and gaps(only_marker, module) == [(6, 6)]


@WAYS
def test_what_the_response_lacks_is_neither_given_nor_a_gap(module: ModuleType | None) -> None:
    """It's released: a gap would never be handed out again."""
    found = read(data(0, b"0", b"1") + data(2, b"2", b"3")[:-5], (0, 3, 1))
    assert given(found, module) == [(0, 1), (1, 1)]
    assert list(found.missing) == [(2, 3)]
    assert list(read(b"", (5, 9, 1)).missing) == [(5, 9)]


@WAYS
def test_a_corrupt_batch_is_rejected_alone(module: ModuleType | None) -> None:
    bad = bytearray(data(2, b"2", b"3"))
    bad[-1] ^= 1
    found = read(data(0, b"0", b"1") + bytes(bad) + data(4, b"4"), (0, 4, 1))
    assert given(found, module) == [(0, 1), (1, 1)]
    assert found.corrupt == (2, 3) and list(found.missing) == [(4, 4)]
    assert found.error is not None and (found.error.first_offset, found.error.last_offset) == (2, 3)
    assert "rejected" in str(found.error)


@WAYS
def test_what_turns_out_to_be_corrupt_when_it_is_decoded_is_left_out(module: ModuleType | None) -> None:
    bad = bytearray(data(2, b"2", b"3"))
    bad[61] = 0xFF  # the first record's length
    bad[62] = 0xFF
    records = data(0, b"0", b"1") + bytes(bad) + data(4, b"4")
    (piece,) = read(records, (0, 4, 1), check=False).pieces
    decoded = DecodedRecords(T0, piece, module)
    assert [record.offset for record in decoded.take(10)] == [0, 1] and decoded.rest is not None
    with pytest.raises(SharedRecordError) as raised:
        DecodedRecords(T0, decoded.rest, module)
    assert (raised.value.first_offset, raised.value.last_offset) == (2, 3)
    corrupt, rest = without_first_batch(decoded.rest)
    assert list(corrupt) == [(2, 3, 1)] and rest is not None
    assert [record.offset for record in DecodedRecords(T0, rest, module).take(10)] == [4]


@WAYS
def test_a_deserializer_that_fails_costs_one_record(module: ModuleType | None) -> None:
    found = read(data(0, b"0", b"x", b"2"), (0, 2, 1))
    decoded = DecodedRecords(T0, found.pieces[0], module, None, int)
    assert [record.value for record in decoded.take(10)] == [0]
    with pytest.raises(SharedRecordError, match="offset 1: the value deserializer fails: ValueError"):
        decoded.take(10)
    assert [record.value for record in decoded.take(10)] == [2]
