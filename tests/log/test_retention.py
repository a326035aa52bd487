"""Rolling and retention."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kohort.log import Log
from kohort.protocol.errors import ErrorCode
from tests.log.batches import NOW, batch, open_log, records_of
from tests.log.test_append import refused

HOUR = 3_600_000


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log._segments]


def files(path: Path) -> set[str]:
    return {file.name[:20] for file in (path / "topic-0").iterdir() if file.name[0] == "0"}


def filled(path: Path, **config: Any) -> Log:
    """Ten segments of one batch of two records; each an hour later than the one before."""
    log = open_log(path, segment_bytes=130, **config)
    for number in range(10):
        log.append(batch(2, timestamp=NOW + number * HOUR), now=NOW + number * HOUR)
    assert len(bases(log)) == 10
    return log


def test_rolls_by_size(tmp_path: Path) -> None:
    size = len(batch())
    log = open_log(tmp_path, segment_bytes=3 * size)
    for _ in range(7):
        log.append(batch(), now=NOW)
    assert bases(log) == [0, 3, 6]
    assert log.size == 7 * size


def test_rolls_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=1000)
    for after in (0, 1000, 1001, 2001, 2002):
        log.append(batch(timestamp=NOW + after), now=NOW + after)
    assert bases(log) == [0, 2, 4]
    log.close()
    log = open_log(tmp_path, segment_ms=1000)
    log.append(batch(timestamp=NOW + 3003), now=NOW)
    assert bases(log) == [0, 2, 4, 5]


def test_rolls_by_the_clock_where_there_are_no_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=1000)
    for after in (0, 1000, 1001):
        log.append(batch(timestamp=-1), now=NOW + after)
    assert bases(log) == [0, 2]


def test_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_index_bytes=48, index_interval_bytes=0)
    for after in range(20):
        log.append(batch(timestamp=NOW + after), now=NOW)
    assert bases(log) == [0, 4, 8, 12, 16]


def test_an_old_segment_rolls_by_itself(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=1000)
    assert not log.roll_if_due(NOW + 5000)
    log.append(batch(timestamp=5), now=NOW)
    assert not log.roll_if_due(NOW + 1000)
    assert log.roll_if_due(NOW + 1001)
    assert not log.roll_if_due(NOW + 9999)
    assert bases(log) == [0, 1]


def test_old_segments_are_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=3 * HOUR)
    assert log.enforce_retention(NOW + 9 * HOUR).number == 6
    assert (log.log_start_offset, bases(log)) == (12, [12, 14, 16, 18])
    assert files(tmp_path) == {f"{base:020}" for base in (12, 14, 16, 18)}
    assert [record.offset for record in records_of(log)] == list(range(12, 20))
    assert log.enforce_retention(NOW + 9 * HOUR).number == 0


def test_when_all_is_old_the_log_is_empty(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=HOUR)
    assert log.enforce_retention(NOW + 99 * HOUR).number == 10
    assert (log.log_start_offset, log.log_end_offset, log.size) == (20, 20, 0)
    assert log.append(batch(), now=NOW).base_offset == 20
    assert log.enforce_retention(NOW).number == 0
    log.close()
    assert open_log(tmp_path).log_start_offset == 20


def test_too_much_is_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1, retention_bytes=0)
    size = log.size // 10
    log.config = log.config.__class__(retention_ms=-1, retention_bytes=4 * size)
    assert log.enforce_retention(NOW).number == 6
    assert (log.size, bases(log)) == (4 * size, [12, 14, 16, 18])
    log.config = log.config.__class__(retention_ms=-1, retention_bytes=4 * size - 1)
    assert log.enforce_retention(NOW).number == 0  # what is left must not be less than asked for


def test_nothing_without_the_policy(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1, retention_bytes=1, cleanup_policy=frozenset({"compact"}))
    assert log.enforce_retention(NOW + 99 * HOUR).number == 0


def test_nothing_above_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path, durable=True, segment_bytes=130, retention_ms=1)
    for number in range(4):
        log.append(batch(2), now=NOW)
        if number == 1:
            log.flush()
    assert log.enforce_retention(NOW + HOUR).number == 2
    assert log.log_start_offset == 4


def test_records_without_timestamps_are_as_old_as_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=130, retention_ms=1000)
    for _ in range(3):
        log.append(batch(2, timestamp=-1), now=NOW)
    oldest = tmp_path / "topic-0" / "00000000000000000000.log"
    os.utime(oldest, (NOW / 1000, NOW / 1000))
    assert log.enforce_retention(NOW + 1001).number == 1


def test_delete_records(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.delete_records(7) == 7
    assert bases(log) == [6, 8, 10, 12, 14, 16, 18]
    assert records_of(log)[0].offset == 6  # its batch begins before the log does
    assert log.delete_records(3) == 7
    assert log.delete_records(20) == 20
    assert (bases(log), log.read(20, 1, up_to=20)) == ([18], b"")
    for offset in (21, -1):
        assert refused(lambda at=offset: log.delete_records(at)) == ErrorCode.OFFSET_OUT_OF_RANGE  # type: ignore[misc]


def test_deleting_part_of_an_ongoing_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(5, producer=(1, 0), transactional=True), now=NOW)
    log.delete_records(3)
    assert log.last_stable_offset == 3


def test_the_first_epoch_begins_where_the_log_does(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=130)
    for epoch in (0, 0, 1, 2, 2):
        log.append(batch(2), now=NOW, leader_epoch=epoch)
    log.delete_records(7)
    assert tuple(log.end_offset_for_epoch(2)) == (2, 10)
    assert (tmp_path / "topic-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n2 7\n"


def test_delete_removes_everything(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.delete()
    assert list(tmp_path.iterdir()) == []
    assert refused(lambda: log.append(batch(), now=NOW)) == ErrorCode.KAFKA_STORAGE_ERROR


def test_segments_before_the_start_are_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path, cleanup_policy=frozenset({"compact"}))
    log.close()
    log = Log.open(tmp_path / "topic-0", log.config, now=NOW, clean=True, log_start_offset=7)
    assert (log.log_start_offset, log.enforce_retention(NOW).number, bases(log)[0]) == (7, 3, 6)
    assert log.enforce_retention(NOW).number == 0


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_deleted_stays_deleted(tmp_path: Path, clean: bool) -> None:
    log = filled(tmp_path)
    log.delete_records(8)
    log.close(clean=clean)
    log = open_log(tmp_path, clean=clean)
    assert (log.log_start_offset, log.log_end_offset) == (8, 20)
