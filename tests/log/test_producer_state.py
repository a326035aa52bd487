"""Idempotent and transactional producers, as Kafka 4.2's ProducerAppendInfo has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.log import Aborted, Log, Origin, ProducerSummary
from kohort.protocol.errors import ErrorCode
from kohort.protocol.records.batch import scan_batches
from tests.log.batches import NOW, batch, headers_of, open_log
from tests.log.test_append import refused

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
MAX_SEQUENCE = 2**31 - 1


def send(log: Log, sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, version: int = 0,
         transactional: bool = False) -> tuple[int, int, bool]:  # fmt: skip
    sent = batch(count, producer=(producer, epoch), sequence=sequence, transactional=transactional)
    done = log.append(sent, now=NOW, transaction_version=version)
    return done.base_offset, done.last_offset, done.duplicate


def end(log: Log, *, commit: bool, producer: int = 7, epoch: int = 0, coordinator: int = 0, version: int = 0) -> int:
    done = log.append_marker(
        producer, epoch, commit=commit, coordinator_epoch=coordinator, now=NOW, transaction_version=version
    )
    return done.base_offset


def test_sequences_follow_each_other(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, 3)
    send(log, 3, 2)
    assert refused(lambda: send(log, 6)) == OUT_OF_ORDER
    assert refused(lambda: send(log, 1)) == OUT_OF_ORDER
    assert send(log, 5) == (5, 5, False)


def test_the_latest_five_batches_are_answered_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(6):
        send(log, 2 * number, 2)
    for number in range(1, 6):
        assert send(log, 2 * number, 2) == (2 * number, 2 * number + 1, True)
    assert refused(lambda: send(log, 0, 2)) == OUT_OF_ORDER
    assert refused(lambda: send(log, 10, 1)) == OUT_OF_ORDER
    assert log.log_end_offset == 12


def test_the_last_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, 2)
    send(log, 2, 3)
    log.close()
    log = open_log(tmp_path)
    assert send(log, 2, 3) == (2, 4, True)
    assert send(log, 5) == (5, 5, False)


def test_sequences_wrap_around(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, MAX_SEQUENCE - 2, 2)
    send(log, MAX_SEQUENCE, 3)
    assert send(log, MAX_SEQUENCE, 3) == (2, 4, True)
    log.close()
    log = open_log(tmp_path)
    assert send(log, MAX_SEQUENCE, 3) == (2, 4, True)
    assert send(log, 2) == (5, 5, False)
    log.close()
    log = open_log(tmp_path)
    assert log.producers()[0].last_sequence == 2


def test_zero_follows_the_largest_sequence(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, MAX_SEQUENCE)
    assert send(log, 0) == (1, 1, False)


def test_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, epoch=1)
    assert refused(lambda: send(log, 1, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(lambda: send(log, 1, epoch=2)) == OUT_OF_ORDER
    assert send(log, 0, epoch=2) == (1, 1, False)
    assert refused(lambda: send(log, 0, epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_goes_on_with_any_sequence(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert send(log, 41) == (0, 0, False)
    assert send(log, 9, producer=8, transactional=True) == (1, 1, False)


def test_an_unknown_producer_with_epochs_of_its_own_begins_with_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert refused(lambda: send(log, 9, transactional=True, version=2)) == OUT_OF_ORDER
    assert send(log, 0, transactional=True, version=2) == (0, 0, False)


def test_transactions_hold_the_last_stable_offset_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, transactional=True)
    send(log, 0, producer=8, transactional=True)
    log.append(batch(), now=NOW)
    assert (log.last_stable_offset, log.ongoing_since(7), log.ongoing_since(8)) == (0, 0, 1)
    end(log, commit=True)
    assert (log.last_stable_offset, log.has_ongoing(7)) == (1, False)
    send(log, 1, transactional=True)
    end(log, commit=False, producer=8)
    assert log.last_stable_offset == 4
    end(log, commit=False)
    assert log.last_stable_offset == log.log_end_offset == 7
    assert log.aborted_transactions(0, 7) == [Aborted(8, 1), Aborted(7, 4)]


def test_aborted_transactions_by_range(tmp_path: Path) -> None:
    """Three of producer 7 at 0 to 2, 3 to 5, 6 to 8: the second committed; one record and marker each segment."""
    log = open_log(tmp_path, segment_bytes=200)
    for number, commit in enumerate((False, True, False)):
        send(log, 2 * number, 2, transactional=True)
        end(log, commit=commit)
    for reopen in (False, True):
        if reopen:
            log.close(clean=False)
            log = open_log(tmp_path, clean=False, segment_bytes=200)
        assert log.aborted_transactions(0, 9) == [Aborted(7, 0), Aborted(7, 6)]
        assert log.aborted_transactions(0, 3) == [Aborted(7, 0)]
        assert log.aborted_transactions(2, 9) == [Aborted(7, 0), Aborted(7, 6)]
        assert log.aborted_transactions(3, 9) == [Aborted(7, 6)]
        assert log.aborted_transactions(3, 6) == []


def test_a_transaction_within_another(tmp_path: Path) -> None:
    """The inner one ends first; who looks for the outer must not stop there."""
    log = open_log(tmp_path)
    send(log, 0, transactional=True)
    send(log, 0, producer=8, transactional=True)
    end(log, commit=False, producer=8)
    end(log, commit=False)
    for reopen in (False, True):
        if reopen:
            log.close(clean=False)
            (tmp_path / "topic-0" / "00000000000000000000.txnindex").unlink()
            log = open_log(tmp_path, clean=False)
        for upper in (2, 3):
            assert log.aborted_transactions(0, upper) == [Aborted(8, 1), Aborted(7, 0)]


def test_readers_far_behind_are_told_of_what_they_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=300, segment_bytes=4000)
    for number in range(100):
        send(log, number, transactional=True)
        end(log, commit=False)
    every = log.aborted_transactions(0, 200)
    assert len(every) == 100
    for start in (0, 1, 57, 120, 199):
        data = log.read(start, 500, up_to=200)
        last = [header.last_offset for header in scan_batches(data)][-1]
        told = log.aborted_transactions(start, 200, size=len(data))
        assert set(log.aborted_transactions(start, last + 1)) <= set(told)
        assert len(told) < 12


def test_a_producer_may_not_leave_its_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, transactional=True)
    assert refused(lambda: send(log, 1)) == ErrorCode.INVALID_TXN_STATE


def test_markers_are_control_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, transactional=True)
    end(log, commit=True, coordinator=3)
    header = headers_of(log)[1]
    assert header.control and header.transactional
    assert (header.base_sequence, header.record_count, header.producer_id) == (-1, 1, 7)
    assert log.producers() == [ProducerSummary(7, 0, 0, NOW, 3, -1)]


def test_old_coordinators_are_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end(log, commit=True, coordinator=3)
    assert refused(lambda: end(log, commit=True, coordinator=2)) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(log, commit=True, coordinator=3)


def test_markers_of_old_epochs_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, epoch=5, transactional=True)
    assert refused(lambda: end(log, commit=False, epoch=4)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(log, commit=False, epoch=5) == 1


def test_a_marker_may_fence_the_producer(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, epoch=5, transactional=True)
    end(log, commit=False, epoch=6)
    assert refused(lambda: send(log, 1, epoch=5, transactional=True)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 0, epoch=6, transactional=True) == (2, 2, False)


def test_transactions_with_epochs_of_their_own(tmp_path: Path) -> None:
    """KIP-890: the marker has the next epoch; sent again it is written again, and ends nothing."""
    log = open_log(tmp_path)
    send(log, 0, epoch=5, transactional=True, version=2)
    assert refused(lambda: end(log, commit=True, epoch=5, version=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(log, commit=True, epoch=6, version=2) == 1
    assert end(log, commit=True, epoch=6, version=2) == 2
    assert refused(lambda: send(log, 1, epoch=5, transactional=True, version=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    send(log, 0, epoch=6, transactional=True, version=2)
    assert refused(lambda: end(log, commit=True, epoch=6, version=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset == 3


def test_an_ongoing_transaction_survives_a_restart(tmp_path: Path) -> None:
    for clean in (True, False):
        path = tmp_path / str(clean)
        log = open_log(path)
        log.append(batch(), now=NOW)
        send(log, 0, transactional=True)
        send(log, 0, producer=8, transactional=True)
        log.close(clean=clean)
        log = open_log(path, clean=clean)
        assert (log.last_stable_offset, log.ongoing_since(7), log.ongoing_since(8)) == (1, 1, 2)
        end(log, commit=True)
        assert log.last_stable_offset == 2


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path, producer_id_expiration_ms=1000)
    send(log, 0)
    send(log, 0, producer=8, transactional=True)
    log.expire_producers(NOW + 999)
    assert [one.producer_id for one in log.producers()] == [7, 8]
    log.expire_producers(NOW + 1000)
    assert [one.producer_id for one in log.producers()] == [8]
    assert send(log, 50) == (2, 2, False)


def test_coordinators_are_fenced_by_epoch_too(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end(log, commit=True, epoch=4)
    old = batch(producer=(7, 3), sequence=-1, transactional=True)
    code = refused(lambda: log.append(old, now=NOW, origin=Origin.COORDINATOR))
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("damage", ["cut", "flip", "version", "missing"])
def test_a_damaged_snapshot_is_made_anew_from_the_log(tmp_path: Path, damage: str) -> None:
    log = open_log(tmp_path)
    send(log, 0, 3, transactional=True)
    send(log, 3, 2, transactional=True)
    known = log.producers()
    log.close()
    path = tmp_path / "topic-0" / "00000000000000000005.snapshot"
    data = bytearray(path.read_bytes())
    match damage:
        case "cut":
            del data[-5:]
        case "flip":
            data[20] ^= 1
        case "version":
            data[1] = 9
    path.write_bytes(data)
    if damage == "missing":
        path.unlink()
    log = open_log(tmp_path)
    assert log.producers() == known
    assert send(log, 0, 3, transactional=True) == (0, 2, True)
