from __future__ import annotations

from kohort.coordinator.share_partition import Cause, DeadLetter, RecordState, StateBatch
from tests.coordinator.share_partition.partitions import (
    ACCEPT,
    LOCK_MS,
    REJECT,
    RELEASE,
    acknowledge,
    acknowledged,
    fetch,
    new,
    persisted,
    states,
)


def test_a_rejected_record_is_archived_once_its_dead_letter_is_written() -> None:
    partition = new(dead_letters=True)
    fetch(partition, (0, 4))
    change = acknowledge(partition, 0, 4, ACCEPT, REJECT, REJECT, ACCEPT, ACCEPT)
    assert change.dead_letters == (DeadLetter(1, 2, Cause.REJECTED, 1),)
    assert (1, 2, "ARCHIVING", 1) in persisted(change)
    partition.commit(change)
    assert (partition.start_offset, partition.delivery_complete_count) == (1, 2)
    change = partition.dead_lettered([(1, 2)])
    assert partition.start_offset == 5
    assert (change.start_offset, change.needs_write) == (5, True)


def test_an_acknowledgement_that_fails_makes_no_dead_letter() -> None:
    partition = new(dead_letters=True)
    fetch(partition, (0, 4))
    partition.rollback(acknowledge(partition, 0, 4, REJECT))
    assert not acknowledge(partition, 0, 4, RELEASE).dead_letters


def test_a_record_delivered_as_often_as_it_may_be() -> None:
    partition = new(dead_letters=True, delivery_count_limit=1)
    fetch(partition, (0, 4), (5, 9), size=5)
    change = acknowledge(partition, 0, 4, RELEASE)
    assert change.dead_letters == (DeadLetter(0, 4, Cause.EXHAUSTED, 1),)
    partition.commit(change)
    expired = partition.expire_locks(LOCK_MS)
    assert expired.dead_letters == (DeadLetter(5, 9, Cause.EXHAUSTED, 1),)
    assert persisted(expired) == [(5, 9, "ARCHIVING", 1)]
    assert partition.next_fetch_offset == 10


def test_dead_letters_of_expired_locks_go_with_the_next_change_if_that_fails() -> None:
    partition = new(dead_letters=True, delivery_count_limit=1)
    fetch(partition, (0, 4))
    partition.rollback(partition.expire_locks(LOCK_MS))
    change = partition.flush()
    assert change.dead_letters == (DeadLetter(0, 4, Cause.EXHAUSTED, 1),)
    assert persisted(change) == [(0, 4, "ARCHIVING", 1)]
    partition.commit(change)
    assert not partition.flush().dead_letters


def test_a_restart_finds_the_dead_letters_that_were_not_written() -> None:
    partition = new(
        StateBatch(0, 4, RecordState.ARCHIVING, 5),
        StateBatch(5, 9, RecordState.ARCHIVING, 2),
        start=0,
        dead_letters=True,
    )
    assert partition.dead_letters() == [DeadLetter(0, 4, Cause.EXHAUSTED, 5), DeadLetter(5, 9, Cause.REJECTED, 2)]
    assert partition.next_fetch_offset == 10
    assert fetch(partition, (0, 9), at=0) == []
    partition.commit(partition.dead_lettered([(5, 9)]))
    assert states(partition) == [(0, 4, "ARCHIVING", 5), (5, 9, "ARCHIVED", 2)]
    partition.commit(partition.dead_lettered([(0, 9)]))
    assert partition.start_offset == 10


def test_a_lowered_limit_makes_dead_letters_of_what_was_delivered_too_often() -> None:
    partition = new(StateBatch(0, 9, RecordState.AVAILABLE, 3), start=0, delivery_count_limit=2, dead_letters=True)
    assert fetch(partition, (0, 9)) == []
    assert partition.flush().dead_letters == (DeadLetter(0, 9, Cause.EXHAUSTED, 3),)


def test_dead_letters_of_what_the_log_has_lost() -> None:
    partition = new(StateBatch(0, 9, RecordState.ARCHIVING, 5), start=0, dead_letters=True)
    partition.advance_start(20)
    assert not partition.dead_lettered([(0, 9)]).needs_write


def test_without_them_rejected_records_are_archived() -> None:
    partition = new()
    fetch(partition, (0, 4))
    change = acknowledge(partition, 0, 4, REJECT)
    assert not change.dead_letters
    acknowledged_states = persisted(change)
    assert acknowledged_states == [(0, 4, "ARCHIVED", 1)]
    partition.commit(change)
    assert not acknowledged(partition, 0, 4, REJECT)
