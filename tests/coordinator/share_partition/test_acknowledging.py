from __future__ import annotations

import pytest

from kohort.coordinator.share_partition import AckBatch, RecordState, SharePartition, StateBatch
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.share_partition.partitions import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    acknowledge,
    acknowledged,
    fetch,
    new,
    persisted,
    states,
)


def refused(partition: SharePartition, *batches: AckBatch, member: str = "a") -> ErrorCode:
    """The error; and that nothing has changed."""
    before = (partition.describe(), partition.delivery_complete_count, partition.next_lock_deadline)
    with pytest.raises(KafkaError) as raised:
        partition.acknowledge(member, batches, 5)
    assert (partition.describe(), partition.delivery_complete_count, partition.next_lock_deadline) == before
    return raised.value.code


@pytest.mark.parametrize(
    ("type_", "state"),
    [(ACCEPT, "ACKNOWLEDGED"), (RELEASE, "AVAILABLE"), (REJECT, "ARCHIVED"), (GAP, "ARCHIVED")],
)
def test_each_type_persists_its_state(type_: int, state: str) -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, type_)
    assert persisted(change) == [(0, 9, state, 1)]
    assert change.needs_write
    assert change.start_offset == 0


def test_the_start_offset_moves_once_it_is_persisted() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, ACCEPT)
    assert (partition.start_offset, change.delivery_complete_count) == (0, 10)
    assert partition.commit(change)
    assert (partition.start_offset, partition.delivery_complete_count, partition.in_flight_batches) == (10, 0, 0)


def test_a_batch_splits_only_where_it_must_and_is_one_again_where_it_can() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 4, 6, RELEASE)
    assert states(partition) == [(0, 3, "ACQUIRED", 1), (4, 6, "AVAILABLE", 1), (7, 9, "ACQUIRED", 1)]
    acknowledged(partition, 0, 3, RELEASE)
    acknowledged(partition, 7, 9, RELEASE)
    assert states(partition) == [(0, 9, "AVAILABLE", 1)]


def test_a_type_for_each_record() -> None:
    partition = new()
    fetch(partition, (0, 4))
    change = acknowledge(partition, 0, 4, ACCEPT, ACCEPT, RELEASE, REJECT, ACCEPT)
    assert persisted(change) == [
        (0, 1, "ACKNOWLEDGED", 1),
        (2, 2, "AVAILABLE", 1),
        (3, 3, "ARCHIVED", 1),
        (4, 4, "ACKNOWLEDGED", 1),
    ]
    partition.commit(change)
    assert partition.start_offset == 2
    assert partition.delivery_complete_count == 2


def test_one_acknowledgement_of_several_batches_and_several_of_one() -> None:
    partition = new()
    fetch(partition, (0, 4))
    fetch(partition, (5, 9))
    partition.commit(partition.acknowledge("a", [AckBatch(0, 6, [ACCEPT]), AckBatch(7, 9, [RELEASE])], 0))
    assert states(partition) == [(7, 9, "AVAILABLE", 1)]


def test_offsets_before_the_start_offset_are_taken_without_a_change() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 4, ACCEPT)
    change = acknowledge(partition, 0, 4, ACCEPT, member="b")
    assert not change.needs_write
    assert not partition.commit(change)
    assert persisted(acknowledge(partition, 0, 9, ACCEPT)) == [(5, 9, "ACKNOWLEDGED", 1)]


def test_only_the_holder_may_acknowledge() -> None:
    partition = new()
    fetch(partition, (0, 9))
    assert refused(partition, AckBatch(0, 9, [ACCEPT]), member="b") is ErrorCode.INVALID_RECORD_STATE


def test_what_is_not_acquired_cannot_be_acknowledged() -> None:
    partition = new()
    assert refused(partition, AckBatch(0, 9, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    fetch(partition, (0, 9))
    acknowledged(partition, 4, 4, RELEASE)
    assert refused(partition, AckBatch(4, 4, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    assert refused(partition, AckBatch(0, 9, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    assert refused(partition, AckBatch(10, 12, [ACCEPT])) is ErrorCode.INVALID_REQUEST
    assert refused(partition, AckBatch(5, 12, [ACCEPT])) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "batch", [AckBatch(0, 4, [ACCEPT] * 4), AckBatch(0, 4, []), AckBatch(4, 0, [ACCEPT]), AckBatch(0, 4, [9])]
)
def test_a_batch_that_makes_no_sense(batch: AckBatch) -> None:
    partition = new()
    fetch(partition, (0, 9))
    assert refused(partition, batch) is ErrorCode.INVALID_REQUEST


def test_all_of_a_request_is_refused_if_a_part_of_it_is() -> None:
    partition = new()
    fetch(partition, (0, 4))
    fetch(partition, (5, 9), member="b")
    ours, theirs = AckBatch(0, 2, [ACCEPT]), AckBatch(3, 6, [RENEW])
    assert refused(partition, ours, theirs) is ErrorCode.INVALID_RECORD_STATE
    assert refused(partition, ours, AckBatch(2, 4, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    assert states(partition) == [(0, 4, "ACQUIRED", 1), (5, 9, "ACQUIRED", 1)]


def test_what_is_under_way_cannot_be_acknowledged_again_until_that_has_failed() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 4, ACCEPT)
    assert refused(partition, AckBatch(3, 6, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    partition.rollback(change)
    assert partition.delivery_complete_count == 0
    assert states(partition) == [(0, 9, "ACQUIRED", 1)]
    acknowledged(partition, 0, 9, ACCEPT)
    assert partition.start_offset == 10


def test_changes_end_in_any_order() -> None:
    partition = new()
    fetch(partition, (0, 9))
    first, second, third = (acknowledge(partition, offset, offset + 2, ACCEPT) for offset in (0, 3, 6))
    partition.commit(third)
    partition.rollback(second)
    assert (partition.start_offset, partition.delivery_complete_count) == (0, 6)
    partition.commit(first)
    assert (partition.start_offset, partition.delivery_complete_count) == (3, 3)
    for change in (first, second, third):
        with pytest.raises(ValueError, match="before"):
            partition.commit(change)
        with pytest.raises(ValueError, match="before"):
            partition.rollback(change)


def test_releasing_at_the_delivery_count_limit_archives() -> None:
    partition = new(delivery_count_limit=2)
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, RELEASE)
    fetch(partition, (0, 9))
    assert persisted(acknowledge(partition, 0, 9, RELEASE)) == [(0, 9, "ARCHIVED", 2)]


def test_a_member_that_leaves_releases_what_it_has() -> None:
    partition = new()
    fetch(partition, (0, 9))
    fetch(partition, (10, 19), member="b")
    fetch(partition, (20, 29))
    under_way = acknowledge(partition, 20, 24, ACCEPT)
    change = partition.release("a")
    assert persisted(change) == [(0, 9, "AVAILABLE", 1), (25, 29, "AVAILABLE", 1)]
    assert partition.next_fetch_offset == 30
    assert partition.commit(change)
    partition.commit(under_way)
    assert partition.next_fetch_offset == 0
    assert not partition.holds("a")
    assert not partition.release("a").needs_write


def test_renewing_begins_the_lock_anew_and_persists_nothing() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, RENEW, now=1_000)
    assert not change.needs_write
    partition.commit(change)
    assert partition.next_lock_deadline == 1_000 + LOCK_MS
    assert partition.in_flight_batches == len(partition.describe()) == 1


def test_renewing_a_part() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledge(partition, 2, 5, *[RENEW, ACCEPT, RENEW, RENEW], now=1_000)
    assert [(each.first_offset, each.locked_until) for each in partition.describe()] == [
        (0, LOCK_MS),
        (2, LOCK_MS + 1_000),
        (3, LOCK_MS),
        (4, LOCK_MS + 1_000),
        (6, LOCK_MS),
    ]
    partition.expire_locks(LOCK_MS)
    assert [each[2] for each in states(partition)] == ["AVAILABLE", "ACQUIRED", "ACQUIRED", "ACQUIRED", "AVAILABLE"]


def test_renewing_may_be_switched_off() -> None:
    partition = new(renew_enabled=False)
    fetch(partition, (0, 9))
    assert refused(partition, AckBatch(0, 4, [ACCEPT]), AckBatch(5, 9, [RENEW])) is ErrorCode.INVALID_RECORD_STATE


def test_an_acknowledged_record_between_others_is_not_given_again() -> None:
    partition = new(StateBatch(5, 5, RecordState.ACKNOWLEDGED, 1), start=0)
    assert fetch(partition, (0, 9)) == [(0, 4, 1), (6, 9, 1)]
