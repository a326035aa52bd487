"""Reading by offset and by time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import Log, TimestampedOffset
from kohort.protocol.errors import ErrorCode
from kohort.protocol.records.batch import Compression, check_batches, scan_batches
from tests.log.batches import NOW, batch, open_log
from tests.log.test_append import refused


def filled(path: Path, counts: list[int], **config: object) -> Log:
    log = open_log(path, **config)
    for number, count in enumerate(counts):
        log.append(batch(count, timestamp=NOW + number), now=NOW)
    return log


def test_reading_begins_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = filled(tmp_path, [3, 3, 3])
    bases = {offset: check_batches(log.read(offset, 1, up_to=9))[0].base_offset for offset in range(9)}
    assert bases == {0: 0, 1: 0, 2: 0, 3: 3, 4: 3, 5: 3, 6: 6, 7: 6, 8: 6}


def test_the_first_batch_is_whole(tmp_path: Path) -> None:
    log = filled(tmp_path, [3, 3])
    size = len(log.read(0, 1, up_to=6))
    assert len(check_batches(log.read(0, 1, up_to=6))) == 1
    assert log.read(0, size - 1, up_to=6, min_one=False) == b""
    assert len(log.read(0, size, up_to=6, min_one=False)) == size


def test_the_last_batch_is_cut(tmp_path: Path) -> None:
    log = filled(tmp_path, [3, 3])
    size = len(log.read(0, 1, up_to=6))
    data = log.read(0, size + 5, up_to=6)
    assert len(data) == size + 5
    assert [header.base_offset for header in scan_batches(data)] == [0]


def test_no_batch_from_the_bound_on(tmp_path: Path) -> None:
    log = filled(tmp_path, [3, 3, 3])
    assert [header.base_offset for header in check_batches(log.read(0, 9999, up_to=6))] == [0, 3]
    assert [header.base_offset for header in check_batches(log.read(0, 9999, up_to=4))] == [0, 3]
    assert log.read(6, 9999, up_to=6) == b""
    assert log.read(9, 9999, up_to=9) == b""


def test_out_of_range(tmp_path: Path) -> None:
    log = filled(tmp_path, [3])
    for offset in (-1, 4):
        assert refused(lambda at=offset: log.read(at, 10, up_to=3)) == ErrorCode.OFFSET_OUT_OF_RANGE  # type: ignore[misc]
    log.delete_records(2)
    assert refused(lambda: log.read(1, 10, up_to=3)) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert check_batches(log.read(2, 10, up_to=3))[0].base_offset == 0


@settings(max_examples=60)
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=40),
    interval=st.sampled_from([0, 1, 200, 4096]),
    segment=st.sampled_from([1500, 5000, 10**6]),
    data=st.data(),
)
def test_any_offset_is_found(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], interval: int, segment: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log")
    log = filled(path, counts, index_interval_bytes=interval, segment_bytes=segment)
    if data.draw(st.booleans()):
        log.close()
        log = open_log(path, index_interval_bytes=interval, segment_bytes=segment)
    end = sum(counts)
    for offset in data.draw(st.lists(st.integers(0, end - 1), max_size=10)):
        up_to = data.draw(st.integers(offset + 1, end))
        found = check_batches(log.read(offset, 10**6, up_to=up_to))
        assert found[0].base_offset <= offset <= found[0].last_offset
        assert found[-1].base_offset < up_to
        assert all(a.next_offset == b.base_offset for a, b in pairwise(found))
    log.close()


def test_the_indexes_are_sparse(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=1000)
    size = len(batch(10))
    assert 200 < size < 300
    for number in range(20):
        log.append(batch(10, timestamp=NOW + number), now=NOW)
    index, times = log._segments.active.index, log._segments.active.time_index
    step = 1000 // size + 1
    assert list(index.positions) == [size * number for number in range(step, 20, step)]
    assert list(index.offsets) == [10 * number + 9 for number in range(step, 20, step)]
    assert list(times.timestamps) == [NOW + number for number in range(step, 20, step)]
    assert times.offsets == index.offsets


def test_many_segments_keep_few_files_open(tmp_path: Path) -> None:
    log = filled(tmp_path, [1] * 60, segment_bytes=100)
    for offset in range(60):
        assert len(check_batches(log.read(offset, 1, up_to=60))) == 1
    assert len(log._segments) == 60
    assert sum(segment.is_open for segment in log._segments) <= 9


def test_an_empty_log_opens_one_file(tmp_path: Path) -> None:
    open_log(tmp_path)
    assert [path.name for path in (tmp_path / "topic-0").iterdir()] == ["00000000000000000000.log"]


# By time.


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_the_first_record_as_late(tmp_path: Path, codec: Compression) -> None:
    log = open_log(tmp_path, segment_bytes=400, index_interval_bytes=100)
    for number in range(20):
        log.append(batch(2, timestamp=NOW + 10 * number, codec=codec), now=NOW, leader_epoch=4)
    for reopen in (False, True):
        if reopen:
            log.close()
            log = open_log(tmp_path)
        assert log.offset_for_timestamp(0) == TimestampedOffset(0, NOW, 4)
        assert log.offset_for_timestamp(NOW + 11) == TimestampedOffset(4, NOW + 20, 4)
        assert log.offset_for_timestamp(NOW + 190) == TimestampedOffset(38, NOW + 190, 4)
        assert log.offset_for_timestamp(NOW + 191) is None
        assert log.max_timestamp_offset() == TimestampedOffset(38, NOW + 190, 4)


def test_times_that_go_back(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    for at in (5, 1, 9, 3, 9, 2):
        log.append(batch(timestamp=NOW + at), now=NOW)
    first = {at: log.offset_for_timestamp(NOW + at) for at in (1, 5, 6, 9, 10)}
    assert {at: found.offset for at, found in first.items() if found} == {1: 0, 5: 0, 6: 2, 9: 2}
    assert log.max_timestamp_offset() == TimestampedOffset(2, NOW + 9, 0)


def test_times_within_a_batch(tmp_path: Path) -> None:
    """Batches of the plain encoder have one timestamp; this one's second record is 5 ms later."""
    log = open_log(tmp_path)
    data = bytearray(batch(2))
    second = data.index(b"key 1") - 4  # attributes, timestamp delta, offset delta and key length before the key
    data[second + 1] = 10
    from kohort.protocol.records.batch import read_header, write_header

    write_header(data, read_header(data)._replace(max_timestamp=NOW + 5))
    log.append(data, now=NOW)
    assert log.offset_for_timestamp(NOW + 1) == TimestampedOffset(1, NOW + 5, 0)
    assert log.max_timestamp_offset() == TimestampedOffset(1, NOW + 5, 0)


def test_times_before_the_log_start_do_not_count(tmp_path: Path) -> None:
    log = filled(tmp_path, [1, 1, 1])
    log.delete_records(2)
    assert log.offset_for_timestamp(NOW) == TimestampedOffset(2, NOW + 2, 0)


def test_log_append_time_is_that_of_all_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime")
    log.append(batch(3), now=NOW)
    log.append(batch(3), now=NOW + 7)
    assert log.offset_for_timestamp(NOW + 1) == TimestampedOffset(3, NOW + 7, 0)


def test_records_without_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(timestamp=-1), now=NOW)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None
