"""What the programs of chaos must put out, of a few records; and how what a queue puts out is judged."""

from __future__ import annotations

from collections import Counter

from tests.chaos.jobs import JobRecord, Tally
from tests.chaos.orders import GAP_MS, GRACE_MS, PAYABLE_MS, SHELF_GAP_MS, OrderRecord, PaymentRecord, expected
from tests.chaos.scenarios import Delivered, Record

START = 1_000_000_000


def order(name: str, at: int, customer: str = "ann", amount: int = 5) -> OrderRecord:
    return OrderRecord(name, customer, amount, START + at)


def lying(*records: Record) -> list[Delivered]:
    """All in a partition; the partition of customers doesn't matter as long as time doesn't go on."""
    return [Delivered(0, offset, record) for offset, record in enumerate(records)]


def test_a_payment_in_time_is_a_pair_and_the_others_wait() -> None:
    records = (order("a", 0), PaymentRecord("a", 7, START + PAYABLE_MS), PaymentRecord("a", 8, START + PAYABLE_MS + 1))
    assert expected(lying(*records)).paid == Counter([("a", 5, 7)])


def test_what_has_no_match_comes_when_both_sides_have_come_further() -> None:
    later = PAYABLE_MS + GRACE_MS + 2
    records = [order("a", 0), PaymentRecord("a", 8, START + PAYABLE_MS + 1)]
    assert not expected(lying(*records, order("a", later))).paid
    both = lying(*records, PaymentRecord("a", 9, START + 2 * later), order("b", 0))
    assert ("a", 5, None) not in expected(both).paid  # orders have not


def test_sessions_end_where_the_gap_is_longer() -> None:
    records = [order("c", 2 * GAP_MS + 1), order("a", 0, amount=15), order("b", GAP_MS), order("d", 0, "bob", 6)]
    found = expected(lying(*records))
    assert not found.visits  # their time isn't over
    assert found.rushes == Counter(
        [
            (5, START, 1, 15),
            (5, START + GAP_MS, 1, 5),
            (5, START + 2 * GAP_MS + 1, 1, 5),
            (6, START, 1, 6),
        ]
    )
    near = [order("a", 0), order("b", SHELF_GAP_MS, amount=15), order("c", 2 * SHELF_GAP_MS + 1)]
    assert expected(lying(*near)).rushes == Counter([(5, START, 2, 20), (5, START + 2 * SHELF_GAP_MS + 1, 1, 5)])


def test_a_visit_is_over_when_its_partition_has_come_further() -> None:
    records = [order("a", 0), order("b", GAP_MS), order("c", 2 * GAP_MS + GRACE_MS + 1)]
    visits = [expected([Delivered(number, 0, each) for each in records]).visits for number in range(4)]
    assert sum(visits, Counter()) == Counter([("ann", START, 2, 10)])


def test_every_order_is_called_about_once_whatever_its_time() -> None:
    found = expected(lying(order("a", 0), order("b", 0, "bob"), order("c", -GRACE_MS), PaymentRecord("d", 1, START)))
    assert found.calls == Counter([("ann", "a"), ("bob", "b"), ("ann", "c")])
    assert not found.reminders


def test_jobs_that_should_be_done_and_dead_ones() -> None:
    tally, jobs = Tally(), lying(JobRecord("a", "once"), JobRecord("b", "bad"), JobRecord("c", "again"))
    assert [each.split(" ", 2)[-1] for each in tally.differences(jobs[:1])] == [
        "JobRecord(id='a', kind='once') isn't done"
    ]
    tally.add_result((0, 0), "a", "one")
    tally.add_result((0, 2), "c", "two")
    tally.add_result((0, 2), "c", "one")
    tally.add_letter((0, 1), "bad")
    assert tally.differences(jobs) == []
    assert tally.differences(jobs[:2]) == ["(0, 2) was never sent"]
    tally.add_letter((0, 0), "why not")
    assert [each[-8:] for each in tally.differences(jobs)] == [" is dead"]


def test_what_is_acknowledged_may_not_come_again() -> None:
    tally, jobs = Tally(), lying(JobRecord("a", "once"), JobRecord("b", "once"))
    tally.add_result((0, 0), "a", "one")
    acknowledged = tally.begin_ending()
    assert tally.seen == set()
    tally.add_result((0, 1), "b", "two")
    assert tally.seen == {"two"}
    tally.forbid(acknowledged)
    tally.add_result((0, 1), "b", "one")
    assert tally.differences(jobs) == []
    tally.add_result((0, 0), "a", "two")
    assert tally.differences(jobs) == ["(0, 0) comes again after it was acknowledged: two has done a"]
