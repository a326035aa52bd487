from __future__ import annotations

import pytest

from kohort.coordinator.share_partition import AcquireMode, RecordState, StateBatch
from tests.coordinator.share_partition.partitions import (
    ACCEPT,
    GAP,
    LOCK_MS,
    RELEASE,
    acknowledge,
    acknowledged,
    fetch,
    new,
    states,
)

EXACTLY = AcquireMode.RECORD_LIMIT


def test_new_records_are_acquired_and_the_next_fetch_is_after_them() -> None:
    partition = new()
    assert fetch(partition, (0, 9), (10, 19)) == [(0, 19, 1)]
    assert partition.next_fetch_offset == 20
    assert (partition.start_offset, partition.end_offset, partition.in_flight_records) == (0, 19, 20)
    assert fetch(partition, (0, 9), (10, 19), at=0, member="b") == []


def test_batches_are_acquired_whole_even_if_that_is_more_than_the_maximum() -> None:
    partition = new()
    assert fetch(partition, (0, 9), (10, 19), (20, 29), most=11) == [(0, 19, 1)]
    assert partition.next_fetch_offset == 20


def test_a_record_limit_is_kept_exactly_and_the_rest_of_the_batch_is_available() -> None:
    partition = new()
    assert fetch(partition, (0, 9), (10, 19), most=4, mode=EXACTLY) == [(0, 3, 1)]
    assert states(partition) == [(0, 3, "ACQUIRED", 1), (4, 9, "AVAILABLE", 0)]
    assert partition.next_fetch_offset == 4
    assert fetch(partition, (0, 9), (10, 19), most=8, mode=EXACTLY, member="b") == [(4, 9, 1), (10, 11, 1)]


def test_new_records_are_acquired_in_batches_of_the_wanted_size() -> None:
    partition = new()
    assert fetch(partition, (0, 4), (5, 9), (10, 14), (15, 19), size=8) == [(0, 9, 1), (10, 19, 1)]
    assert partition.in_flight_batches == 2


def test_a_fetch_that_begins_before_the_start_offset() -> None:
    partition = new(start=5)
    assert fetch(partition, (0, 9)) == [(5, 9, 1)]
    assert fetch(partition, (0, 4), at=0) == []


def test_released_records_are_acquired_again_by_the_batches_they_were_in() -> None:
    partition = new()
    fetch(partition, (0, 9))
    fetch(partition, (10, 19))
    acknowledged(partition, 0, 19, RELEASE)
    assert partition.next_fetch_offset == 0
    assert fetch(partition, (0, 9), (10, 19), member="b") == [(0, 9, 2), (10, 19, 2)]


def test_a_part_of_a_batch_is_acquired_if_only_that_was_fetched() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, RELEASE)
    assert fetch(partition, (0, 4), member="b") == [(0, 4, 2)]
    assert partition.next_fetch_offset == 5


def test_neighbours_in_a_batch_with_one_count_are_given_as_one() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, *[RELEASE] * 3, *[ACCEPT] * 2, *[RELEASE] * 5)
    assert fetch(partition, (0, 9), member="b") == [(0, 2, 2), (5, 9, 2)]


def test_no_more_than_the_limit_is_in_flight() -> None:
    partition = new(max_record_locks=20)
    assert fetch(partition, (0, 9), (10, 19), (20, 29)) == [(0, 19, 1)]
    assert partition.next_fetch_offset is None
    assert fetch(partition, (20, 29), at=20) == []


def test_at_the_limit_what_is_released_is_acquired_but_nothing_new() -> None:
    partition = new(max_record_locks=30)
    fetch(partition, (0, 29))
    acknowledged(partition, 20, 20, RELEASE)
    assert partition.next_fetch_offset == 20
    assert fetch(partition, (0, 29), (30, 39), member="b") == [(20, 20, 2)]
    assert partition.next_fetch_offset is None


def test_there_is_room_again_when_the_start_offset_moves() -> None:
    partition = new(max_record_locks=20)
    fetch(partition, (0, 9), (10, 19))
    acknowledged(partition, 0, 9, ACCEPT)
    assert partition.next_fetch_offset == 20


def test_records_whose_release_is_under_way_are_not_acquired() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, RELEASE)
    assert partition.next_fetch_offset == 10
    assert fetch(partition, (0, 9), at=0, member="b") == []
    partition.commit(change)
    assert fetch(partition, (0, 9), at=0, member="b") == [(0, 9, 2)]


def test_gaps_between_fetched_batches_are_acquired_and_reported_by_the_member() -> None:
    partition = new()
    assert fetch(partition, (0, 4), (8, 9)) == [(0, 9, 1)]
    acknowledged(partition, 0, 9, *[ACCEPT] * 5, *[GAP] * 3, *[ACCEPT] * 2)
    assert partition.start_offset == 10


def test_what_compaction_removed_since_it_was_released_is_archived() -> None:
    partition = new()
    fetch(partition, (0, 9), size=10)
    fetch(partition, (10, 19))
    acknowledged(partition, 0, 9, RELEASE)
    assert fetch(partition, (20, 29), at=0, member="b") == [(20, 29, 1)]
    assert partition.start_offset == 10
    assert partition.flush().needs_write


def test_offsets_that_no_fetch_returned_do_not_hold_up_the_start_offset() -> None:
    partition = new()
    fetch(partition, (0, 9))
    fetch(partition, (30, 39), at=10)
    acknowledged(partition, 30, 39, ACCEPT)
    acknowledged(partition, 0, 9, ACCEPT)
    assert (partition.start_offset, partition.next_fetch_offset) == (40, 40)


def test_a_log_that_begins_with_a_gap_leaves_room_for_records() -> None:
    partition = new(max_record_locks=20)
    assert fetch(partition, (5_000, 5_009)) == [(5_000, 5_009, 1)]
    assert (partition.start_offset, partition.in_flight_records, partition.next_fetch_offset) == (5_000, 10, 5_010)


def test_persisted_states_leave_gaps_that_are_fetched_like_new_records() -> None:
    partition = new(
        StateBatch(10, 19, RecordState.ACKNOWLEDGED, 1), StateBatch(30, 39, RecordState.AVAILABLE, 1), start=0
    )
    assert partition.next_fetch_offset == 0
    assert fetch(partition, (0, 4), (5, 9), (10, 19), (20, 24), (25, 29), (30, 39), most=3) == [(0, 4, 1)]
    assert fetch(partition, (5, 9), (10, 19), (20, 24), (25, 29), (30, 39), member="b", most=6) == [
        (5, 9, 1),
        (20, 24, 1),
    ]
    assert fetch(partition, (25, 29), (30, 39), (40, 49)) == [(25, 29, 1), (30, 39, 2), (40, 49, 1)]


def test_the_end_of_a_persisted_gap_that_was_compacted_away_is_archived() -> None:
    partition = new(StateBatch(20, 29, RecordState.ACKNOWLEDGED, 1), start=0)
    assert fetch(partition, (0, 4), at=0) == [(0, 4, 1)]
    assert partition.next_fetch_offset == 5
    assert fetch(partition, (30, 34)) == [(30, 34, 1)]
    acknowledged(partition, 0, 4, ACCEPT)
    assert partition.start_offset == 30


def test_aborted_batches_are_archived_and_not_given() -> None:
    partition = new()
    batches = [(0, 4), (5, 9), (10, 14), (15, 19)]
    assert fetch(partition, *batches, aborted=[(0, 4), (10, 14)]) == [(5, 9, 1), (15, 19, 1)]
    assert partition.start_offset == 5
    change = partition.flush()
    assert change.needs_write
    assert [tuple(batch) for batch in change.batches] == [(10, 14, RecordState.ARCHIVED, 1)]
    assert partition.delivery_complete_count == 5


def test_aborted_batches_that_another_member_has_stay_as_they_are() -> None:
    partition = new()
    fetch(partition, (0, 9), member="b")
    assert fetch(partition, (0, 9), (10, 19), at=0, aborted=[(0, 9)]) == [(10, 19, 1)]
    assert states(partition)[0] == (0, 9, "ACQUIRED", 1)


def test_aborted_records_that_reached_the_limit_are_not_delivered_once_more() -> None:
    partition = new(StateBatch(5, 9, RecordState.AVAILABLE, 1), delivery_count_limit=1, dead_letters=False)
    assert fetch(partition, (0, 4), (5, 9), aborted=[(5, 9)]) == [(0, 4, 1)]
    assert states(partition) == [(0, 4, "ACQUIRED", 1), (5, 9, "ARCHIVED", 1)]


def test_what_is_done_behind_a_gap_of_the_log_stays_done_after_a_restart() -> None:
    """The gap isn't persisted: only what is read next tells again that there are no records."""
    partition = new(*[StateBatch(first, last, RecordState.ARCHIVED, 1) for first, last in ((0, 1), (6, 11))])
    assert (partition.start_offset, partition.next_fetch_offset) == (2, 2)
    assert fetch(partition, (12, 14)) == [(12, 14, 1)]
    assert partition.start_offset == 12


def test_all_aborted_moves_the_start_offset_at_once() -> None:
    partition = new()
    assert fetch(partition, (0, 9), aborted=[(0, 9)]) == []
    assert (partition.start_offset, partition.next_fetch_offset, partition.next_lock_deadline) == (10, 10, None)


@pytest.mark.parametrize("limit", [5, 10])
def test_records_that_were_delivered_often_are_given_in_ever_smaller_portions(limit: int) -> None:
    partition = new(delivery_count_limit=limit)
    fetch(partition, (0, 499))
    given = []
    for count in range(1, limit):
        partition.commit(partition.release("a"))
        given.append(fetch(partition, (0, 499), now=count)[0])
        assert given[-1][2] == count + 1
    sizes = [last - first + 1 for first, last, _ in given]
    throttled = sizes[(limit + 1) // 2 - 1 : -1]
    assert throttled == [500 >> power for power in range(1, len(throttled) + 1)]
    assert sizes[-1] == 1
    assert set(sizes[: (limit + 1) // 2 - 1]) == {500}


def test_a_record_on_its_last_delivery_is_given_alone_and_after_it_the_others() -> None:
    partition = new(StateBatch(0, 3, RecordState.AVAILABLE, 1), StateBatch(4, 7, RecordState.AVAILABLE, 4), start=0)
    assert fetch(partition, (0, 7)) == [(0, 3, 2)]
    assert fetch(partition, (0, 7), at=4) == [(4, 4, 5)]
    assert fetch(partition, (0, 7), at=5) == [(5, 5, 5)]


def test_often_delivered_records_wait_for_a_fetch_of_their_own() -> None:
    """As Kafka does with the same states and batches."""
    partition = new(
        StateBatch(15, 19, RecordState.AVAILABLE, 2),
        StateBatch(20, 22, RecordState.ARCHIVED, 3),
        StateBatch(26, 30, RecordState.AVAILABLE, 3),
        start=5,
    )
    batches = [(7, 19), (20, 27)]
    assert fetch(partition, *batches) == [(7, 14, 1), (15, 19, 3), (23, 25, 1)]
    assert (partition.next_fetch_offset, partition.end_offset, partition.delivery_complete_count) == (26, 30, 3)
    assert fetch(partition, *batches) == [(26, 27, 4)]


def test_portions_are_of_the_batch_and_halve_with_each_delivery() -> None:
    """As Kafka does with the same states and batches."""
    partition = new(StateBatch(15, 34, RecordState.AVAILABLE, 4), start=15, delivery_count_limit=7)
    batch = (15, 34)
    assert fetch(partition, batch) == [(15, 24, 5)]
    partition.commit(partition.expire_locks(LOCK_MS))
    assert fetch(partition, batch) == [(15, 19, 6)]
    partition.commit(partition.expire_locks(LOCK_MS))
    assert [fetch(partition, batch) for _ in range(5)] == [[(offset, offset, 7)] for offset in range(15, 20)]
    assert fetch(partition, batch) == [(20, 24, 6)]
    assert fetch(partition, batch) == [(25, 34, 5)]


def test_a_record_on_its_last_delivery_ends_the_portion_before_it() -> None:
    """As Kafka does with the same states and batches."""
    partition = new(StateBatch(15, 34, RecordState.AVAILABLE, 2), start=15)
    batch = (15, 34)
    assert fetch(partition, batch) == [(15, 34, 3)]
    acknowledged(partition, 17, 17, RELEASE)
    acknowledged(partition, 20, 20, RELEASE)
    assert fetch(partition, batch) == [(17, 17, 4), (20, 20, 4)]
    acknowledged(partition, 15, 34, RELEASE)
    assert fetch(partition, batch) == [(15, 16, 4)]
    assert fetch(partition, batch) == [(17, 17, 5)]


def test_with_a_limit_of_two_nothing_is_given_alone() -> None:
    partition = new(delivery_count_limit=2)
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, RELEASE)
    assert fetch(partition, (0, 9)) == [(0, 9, 2)]


def test_a_limit_that_was_lowered_archives_what_was_delivered_too_often() -> None:
    partition = new(StateBatch(0, 9, RecordState.AVAILABLE, 3), start=0, delivery_count_limit=2)
    assert fetch(partition, (0, 9), (10, 19)) == [(10, 19, 1)]
    assert partition.start_offset == 10


def test_locks_begin_when_records_are_acquired() -> None:
    partition = new()
    fetch(partition, (0, 9), now=100)
    assert partition.next_lock_deadline == 100 + LOCK_MS
    assert partition.describe()[0].member_id == "a"
    assert partition.describe()[0].locked_until == 100 + LOCK_MS
    assert partition.holds("a")
    assert not partition.holds("b")
