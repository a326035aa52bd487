"""What of an fetch is for the user, and what is decoded of it: by rows and by columns alike."""

from __future__ import annotations

import struct
from types import ModuleType

import pytest

from kohort.client.consuming.completed_fetch import PIECE_BYTES, CompletedFetch, read_fetch
from kohort.client.consuming.decoding import DecodedPiece
from kohort.client.errors import RecordError
from kohort.client.types import Record, TopicPartition
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.records import columns
from kohort.protocol.records.batch import assign_offsets, read_header, write_header
from kohort.protocol.records.rows import encode_records, encode_rows

T0 = TopicPartition("t", 0)
Aborted = FetchResponse.TopicResponse.Partition.AbortedTransaction
WAYS = pytest.mark.parametrize("module", [None, columns], ids=["rows", "columns"])


def data(offset: int, *values: bytes, producer: int = -1, epoch: int = 0) -> bytes:
    batch = encode_rows(
        [100] * len(values), [b"k"] + [None] * (len(values) - 1), values, [[("h", b"1")]] + [()] * (len(values) - 1),
        base_offset=offset, leader_epoch=epoch, producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1, transactional=producer >= 0,
    )  # fmt: skip
    return bytes(batch)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    records = [(struct.pack(">hh", 0, int(commit)), bytes(6))]
    batch = encode_records(records, 100, producer_id=producer, producer_epoch=0, transactional=True, control=True)
    assign_offsets(batch, read_header(batch), offset, 0)
    return bytes(batch)


def given(fetch: CompletedFetch, module: ModuleType | None, offset: int = 0, most: int = 2) -> list[Record]:
    records = []
    for piece in fetch.pieces:
        decoded = DecodedPiece(T0, piece, max(offset, piece.offset), module)
        while decoded.left:
            records += decoded.take(most)
        assert decoded.rest is None
    return records


def values(fetch: CompletedFetch, module: ModuleType | None, offset: int = 0) -> list[bytes]:
    return [record.value for record in given(fetch, module, offset)]


@WAYS
def test_records_below_the_offset_asked_for_are_left_out(module: ModuleType | None) -> None:
    fetch = read_fetch(T0, data(0, b"0", b"1", b"2") + data(3, b"3"), 1, None)
    assert [record.offset for record in given(fetch, module)] == [1, 2, 3]
    assert (fetch.next_offset, fetch.error, fetch.cut_off) == (4, None, False)
    assert values(read_fetch(T0, data(0, b"0") + data(1, b"1"), 1, None), module) == [b"1"]


@WAYS
def test_records_are_whole(module: ModuleType | None) -> None:
    fetch = read_fetch(T0, data(0, b"0", b"1"), 0, None)
    assert given(fetch, module) == [
        Record("t", 0, 0, 100, b"k", b"0", [("h", b"1")]),
        Record("t", 0, 1, 100, None, b"1", []),
    ]
    assert all(type(record) is Record for record in given(fetch, module))


@WAYS
def test_aborted_transactions_and_markers_are_left_out(module: ModuleType | None) -> None:
    log = b"".join(
        [
            data(0, b"plain"),
            data(1, b"a1", b"a2", producer=1),
            data(3, b"b1", producer=2),
            marker(4, 1, commit=False),
            data(5, b"a3", producer=1),
            marker(6, 2, commit=True),
            marker(7, 1, commit=True),
        ]
    )
    aborted = [Aborted(producer_id=1, first_offset=1)]
    assert values(read_fetch(T0, log, 0, aborted), module) == [b"plain", b"b1", b"a3"]
    assert values(read_fetch(T0, log, 0, None), module) == [b"plain", b"a1", b"a2", b"b1", b"a3"]
    only_markers = read_fetch(T0, log, 6, [])
    assert values(only_markers, module) == []
    assert only_markers.next_offset == 8 == only_markers.pieces[-1].next_offset


def test_pieces_have_one_leader_epoch_and_a_bounded_size() -> None:
    log = data(0, b"0") + data(1, b"1", epoch=1) + data(2, b"2", epoch=1)
    fetch = read_fetch(T0, log, 0, None)
    assert [(piece.offset, piece.next_offset, piece.leader_epoch) for piece in fetch.pieces] == [(0, 1, 0), (1, 3, 1)]
    half = bytes(PIECE_BYTES // 2)
    fetch = read_fetch(T0, b"".join(data(index, half) for index in range(5)), 0, None)
    assert [(piece.offset, piece.next_offset) for piece in fetch.pieces] == [(n, n + 1) for n in range(5)]


def test_the_beginning_of_a_batch_asks_for_more() -> None:
    assert read_fetch(T0, data(0, b"0" * 100)[:80], 0, None) == CompletedFetch([], 0, None, cut_off=True)
    fetch = read_fetch(T0, data(0, b"0") + data(1, b"1" * 100)[:80], 0, None)
    assert (fetch.next_offset, fetch.cut_off) == (1, False)
    assert not read_fetch(T0, b"", 0, None).cut_off


@WAYS
def test_a_wrong_checksum_stops_there_and_says_how_to_go_on(module: ModuleType | None) -> None:
    bad = bytearray(data(1, b"xxxx", b"yyyy"))
    bad[-3] ^= 1
    log = data(0, b"0") + bytes(bad) + data(3, b"3")
    fetch = read_fetch(T0, log, 0, None)
    assert values(fetch, module) == [b"0"]
    assert fetch.next_offset == 1
    assert fetch.error is not None
    assert (fetch.error.offset, fetch.error.next_offset) == (1, 3)
    assert "t-0, offset 1: corrupt data" in str(fetch.error)
    assert len(read_fetch(T0, log, 0, None, check=False).pieces) == 1


@WAYS
def test_records_that_do_not_add_up_stop_before_their_batch(module: ModuleType | None) -> None:
    bad = bytearray(data(1, b"xxxx", b"yyyy"))
    bad[61] = 2  # the first record's length
    write_header(bad, read_header(bad))
    fetch = read_fetch(T0, data(0, b"0") + bytes(bad), 0, None)
    assert fetch.error is None
    (piece,) = fetch.pieces
    decoded = DecodedPiece(T0, piece, 0, module)
    assert [record.value for record in decoded.take(10)] == [b"0"]
    assert decoded.next_offset == decoded.next_to_give == 1
    assert decoded.rest is not None
    with pytest.raises(RecordError, match="t-0, offset 1: corrupt data") as caught:
        DecodedPiece(T0, decoded.rest, 0, module)
    assert (caught.value.offset, caught.value.next_offset) == (1, 3)
    (piece,) = read_fetch(T0, bytes(bad), 2, None).pieces
    with pytest.raises(RecordError, match="t-0, offset 2") as caught:
        DecodedPiece(T0, piece, 2, module)
    assert caught.value.next_offset == 3


def test_a_compression_that_nobody_has_defined_is_corrupt_though_checksums_are_not_looked_at() -> None:
    bad = bytearray(data(1, b"1"))
    bad[22] |= 5  # attributes
    fetch = read_fetch(T0, data(0, b"0") + bytes(bad), 0, None, check=False)
    assert fetch.next_offset == 1
    assert fetch.error is not None
    assert "unknown compression 5" in str(fetch.error)
