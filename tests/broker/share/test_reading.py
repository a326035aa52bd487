from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kohort.broker.share import reading
from kohort.broker.share.offset_reset import StartOffsets, duration_ms
from kohort.broker.share.reading import end_offset, read_batches
from kohort.broker.turns import Line, Turns
from kohort.log.log import Log
from kohort.log.types import Origin
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.rows import encode_records, encode_rows
from tests.log.batches import NOW, open_log


def append(log: Log, count: int = 1, *, producer: int | None = None, now: int = NOW) -> None:
    """A batch of `count` records; of an open transaction with a producer."""
    open_of, epoch = (-1, -1) if producer is None else (producer, 0)
    records = encode_records(
        [(b"k", b"v" * 50)] * count, now, producer_id=open_of, producer_epoch=epoch, transactional=open_of >= 0
    )
    log.append(records, now=now, origin=Origin.COORDINATOR)


def end(log: Log, producer: int, *, commit: bool) -> None:
    log.append_marker(producer, 0, commit=commit, now=NOW, coordinator_epoch=0)


def test_batches_come_as_they_are(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(4):
        append(log, 3)
    size = len(log.read(0, 1 << 20, up_to=3))
    fetched = read_batches(log, 4, 2 * size + 7, committed=False, min_one=True, max_records=100)
    assert fetched.ranges == [(3, 5), (6, 8)]  # the third isn't complete
    assert fetched.between(3, 8) == log.read(3, 2 * size, up_to=12)
    assert fetched.between(7, 7) == log.read(6, size, up_to=12)
    assert fetched.between(4, 5) == log.read(3, size, up_to=12)
    assert read_batches(log, 0, 7, committed=False, min_one=True, max_records=100).ranges == [(0, 2)]
    assert read_batches(log, 0, 7, committed=False, min_one=False, max_records=100).ranges == []
    assert read_batches(log, 12, 1 << 20, committed=False, min_one=True, max_records=100).ranges == []
    log.delete_records(3)
    with pytest.raises(KafkaError) as caught:
        read_batches(log, 2, 1 << 20, committed=False, min_one=True, max_records=100)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_no_more_is_read_than_the_records_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(50):
        append(log, 3)
    size = len(log.read(0, 1 << 20, up_to=3))
    whole = log.read(0, 50 * size, up_to=150)
    for piece in (3 * size - 1, 3 * size, size - 1, 5):
        monkeypatch.setattr(reading, "PIECE_BYTES", piece)
        fetched = read_batches(log, 4, 1 << 20, committed=False, min_one=True, max_records=20)
        assert fetched.ranges[0] == (3, 5)
        assert fetched.ranges[6] == (21, 23)  # 23 is the last of 20
        assert len(fetched.ranges) <= 9
        assert bytes(fetched.between(0, 200)) == whole[size : size * (1 + len(fetched.ranges))]


class Piece(bytes):
    """Counts the bytes that are copied where one is added to what was read before."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        Piece.copied += len(before)
        return bytes(before) + bytes(self)


def test_what_is_read_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of all for each piece is quadratic: a fetch of 50 MB took seconds."""
    log = open_log(tmp_path / "t-0")
    for _ in range(50):
        append(log, 3)
    size = len(log.read(0, 1 << 20, up_to=3))
    whole = log.read(0, 50 * size, up_to=150)
    read = Log.read
    monkeypatch.setattr(reading, "PIECE_BYTES", 2 * size + 1)
    monkeypatch.setattr(Log, "read", lambda *args, **kinds: Piece(read(*args, **kinds)))
    fetched = read_batches(log, 0, 1 << 20, committed=False, min_one=True, max_records=150)
    assert (fetched.data, Piece.copied) == (whole, 0)


def test_what_was_aborted_is_found_between_what_was_not(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, 2, producer=1)  # 0, 1: aborted
    append(log, 1)  # 2
    append(log, 1, producer=2)  # 3: committed
    end(log, 1, commit=False)  # 4
    append(log, 1, producer=1)  # 5: committed, of the same producer
    end(log, 2, commit=True)  # 6
    end(log, 1, commit=True)  # 7
    append(log, 1, producer=1)  # 8: open
    append(log, 1)  # 9
    assert (end_offset(log, committed=True), end_offset(log, committed=False)) == (8, 10)
    everything = read_batches(log, 0, 1 << 20, committed=False, min_one=True, max_records=100)
    assert (len(everything.ranges), list(everything.aborted)) == (9, [])
    committed = read_batches(log, 0, 1 << 20, committed=True, min_one=True, max_records=100)
    assert committed.ranges[-1] == (7, 7)
    assert committed.aborted == [(0, 1)]
    assert read_batches(log, 1, 1 << 20, committed=True, min_one=True, max_records=100).aborted == [(0, 1)]
    assert read_batches(log, 5, 1 << 20, committed=True, min_one=True, max_records=100).aborted == []


def test_what_was_aborted_is_found_in_each_segment_that_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", segment_bytes=150)
    append(log, 1)  # 0
    for _ in range(3):
        append(log, 1, producer=1)  # 1, 3, 5: aborted
        end(log, 1, commit=False)  # 2, 4, 6
    append(log, 1)  # 7
    fetched = read_batches(log, 0, 1 << 20, committed=True, min_one=True, max_records=100)
    assert fetched.ranges == [(offset, offset) for offset in range(8)]
    assert fetched.aborted == [(1, 1), (3, 3), (5, 5)]


def begins(log: Log, reset: str, now: int) -> tuple[int, int]:
    """Where a group begins, and how often others were let in before that was known."""

    async def main() -> tuple[int, int]:
        found: list[int | KafkaError] = []
        StartOffsets(Turns(), Line(1)).find(log, reset, now, found.append)
        others = 0
        while not found:
            await asyncio.sleep(0)
            others += 1
        assert isinstance(found[0], int)
        return found[0], others

    return asyncio.run(main())


def start_offset(log: Log, reset: str, now: int) -> int:
    return begins(log, reset, now)[0]


def test_where_a_group_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for minutes in range(5):
        append(log, now=NOW + minutes * 60_000)
    log.delete_records(1)
    now = NOW + 5 * 60_000
    assert start_offset(log, "earliest", now) == 1
    assert start_offset(log, "latest", now) == 5
    assert start_offset(log, "by_duration:PT2M", now) == 3
    assert start_offset(log, "by_duration:P3D", now) == 1
    assert start_offset(log, "by_duration:PT10S", now) == 5


def test_a_search_by_time_lets_others_in_between(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    count = 100_000  # some 100 ms of work, in turns of 5
    times = [NOW] * (count - 1) + [NOW + 60_000]
    log.append(encode_rows(times, [None] * count, [None] * count), now=NOW)
    offset, others = begins(log, "by_duration:PT1M", NOW + 60_001)
    assert offset == count - 1
    assert others >= 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [("P1D", 86_400_000), ("+PT1H2M3.5S", 3_723_500), ("pt0.1234s", 123), ("PT3,25S", 3250), ("P2DT1M", 172_860_000)],
)
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(f"by_duration:{text}") == expected


def test_what_is_no_duration() -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms("by_duration:1h")
