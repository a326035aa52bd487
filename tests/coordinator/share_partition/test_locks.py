from __future__ import annotations

from kohort.coordinator.share_partition.locks import Locks
from tests.coordinator.share_partition.partitions import (
    ACCEPT,
    LOCK_MS,
    RELEASE,
    acknowledge,
    acknowledged,
    fetch,
    new,
    persisted,
    states,
)


def test_an_expired_lock_makes_records_available_at_once_and_persists_it() -> None:
    partition = new()
    fetch(partition, (0, 9))
    assert not partition.expire_locks(LOCK_MS - 1).needs_write
    change = partition.expire_locks(LOCK_MS)
    assert persisted(change) == [(0, 9, "AVAILABLE", 1)]
    assert partition.next_lock_deadline is None
    assert fetch(partition, (0, 9), member="b", now=LOCK_MS) == [(0, 9, 2)]
    assert partition.commit(change)
    assert states(partition) == [(0, 9, "ACQUIRED", 2)]


def test_what_could_not_be_persisted_of_an_expired_lock_goes_with_the_next_change() -> None:
    partition = new()
    fetch(partition, (0, 9))
    fetch(partition, (10, 19), now=5)
    partition.rollback(partition.expire_locks(LOCK_MS))
    assert states(partition)[0] == (0, 9, "AVAILABLE", 1)
    assert persisted(acknowledge(partition, 10, 19, ACCEPT)) == [(0, 9, "AVAILABLE", 1), (10, 19, "ACKNOWLEDGED", 1)]


def test_a_record_acquired_again_meanwhile_is_persisted_as_it_was_before() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = partition.expire_locks(LOCK_MS)
    fetch(partition, (0, 9), now=LOCK_MS)
    partition.rollback(change)
    assert persisted(partition.flush()) == [(0, 9, "AVAILABLE", 1)]


def test_at_the_delivery_count_limit_an_expired_lock_archives() -> None:
    partition = new(delivery_count_limit=1)
    fetch(partition, (0, 9))
    change = partition.expire_locks(LOCK_MS)
    assert (change.start_offset, change.batches) == (10, ())
    assert change.needs_write  # or a restart would begin before it
    assert partition.start_offset == 10


def test_a_part_that_was_acknowledged_does_not_expire() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 4, 5, ACCEPT)
    assert persisted(partition.expire_locks(LOCK_MS)) == [(0, 3, "AVAILABLE", 1), (6, 9, "AVAILABLE", 1)]


def test_an_acknowledgement_under_way_outlives_the_lock() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, ACCEPT)
    assert not partition.expire_locks(LOCK_MS).needs_write
    partition.commit(change)
    assert partition.start_offset == 10


def test_the_deadline_counts_again_if_the_acknowledgement_fails() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, ACCEPT)
    partition.expire_locks(LOCK_MS)
    assert partition.next_lock_deadline is None
    partition.rollback(change)
    assert partition.next_lock_deadline == LOCK_MS
    assert persisted(partition.expire_locks(LOCK_MS + 1)) == [(0, 9, "AVAILABLE", 1)]


def test_each_fetch_has_its_own_deadline() -> None:
    partition = new()
    for index in range(3):
        fetch(partition, (index * 10, index * 10 + 9), now=index)
    acknowledged(partition, 0, 9, RELEASE)
    assert partition.next_lock_deadline == LOCK_MS + 1
    assert persisted(partition.expire_locks(LOCK_MS + 1)) == [(10, 19, "AVAILABLE", 1)]
    assert partition.next_lock_deadline == LOCK_MS + 2


def test_locks_that_are_gone_leave_nothing_behind() -> None:
    locks = Locks()
    for offset in range(100_000):
        locks.take_out(locks.add("a", offset, offset, offset + 30_000), 1)
    assert len(locks._deadlines) < 100
    assert not locks.of("a")
    assert locks.next_deadline is None
