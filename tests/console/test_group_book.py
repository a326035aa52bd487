from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.administration.group_types import GroupListing, GroupType
from kohort.console.delay import Delay
from kohort.console.group_book import GroupBook, Summary
from kohort.console.rebalances import Seen
from kohort.console.trend import Direction


def listings(*names: str) -> list[GroupListing]:
    return [GroupListing(name, GroupType.CONSUMER, "Stable", "consumer", 1) for name in names]


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


@given(st.integers(1, 60), st.integers(1, 20), st.sets(st.integers(0, 59), max_size=10))
def test_each_group_gets_its_turn(count: int, batch: int, seen: set[int]) -> None:
    """Whatever is looked at all the time, as long as there is room for others."""
    book = GroupBook()
    book.listed(listings(*names(count)))
    wanted = [f"g{number}" for number in seen][: batch - 1]
    there = [name for name in wanted if name in book.groups]
    for at in range(math.ceil(count / max(1, batch - len(there)))):
        due = book.due(wanted, batch)
        assert set(there) <= set(due)
        assert len(due) == len(set(due)) <= batch
        book.looked(float(at), {name: Summary(1, 5) for name in due}, due)
    assert all(group.summary for group in book.groups.values())


@given(st.lists(st.lists(st.sampled_from(names(8)), max_size=8, unique=True), max_size=12), st.integers(1, 5))
def test_groups_that_are_gone_leave_nothing(lists: list[list[str]], most: int) -> None:
    book = GroupBook(most)
    for at, there in enumerate(lists):
        book.listed(listings(*there))
        book.looked(float(at), {name: Summary(0, at) for name in there}, [*there, "gone"])
        assert set(book.groups) == set(there)
        kept = [name for name in names(8) if book.history(name).samples]
        assert set(kept) <= set(there)
        assert len(kept) <= most


def test_a_group_that_cannot_be_read_waits_for_its_turn_and_keeps_what_was_seen() -> None:
    book = GroupBook()
    book.listed(listings("a", "b", "c"))
    book.looked(1.0, {"a": Summary(2, 10)}, ["a", "b"])
    assert book.due((), 1) == ["c"]
    book.looked(2.0, {}, ["a", "c"])
    assert book.due((), 1) == ["b"]
    assert book.groups["a"].summary == Summary(2, 10)
    assert len(book.history("a").samples) == 1


def test_a_trend_is_that_of_the_history() -> None:
    book = GroupBook()
    book.listed(listings("a"))
    for at in range(5):
        book.looked(float(at), {"a": Summary(1, 100 - 10 * at)}, ["a"])
    assert book.groups["a"].trend.direction is Direction.FALLING
    assert book.groups["a"].trend.caught_up_in == 6


def test_rebalances_are_counted_from_look_to_look() -> None:
    book = GroupBook()
    book.listed(listings("a"))
    for at, epoch in enumerate((3, 4, 9)):
        book.looked(float(at), {"a": Summary(1, 0, 0, Seen(epoch, False, 1))}, ["a"])
        assert book.groups["a"].rebalances == epoch - 3
    book.looked(3.0, {}, ["a"])  # it couldn't be read
    assert book.groups["a"].rebalances == 6


def test_a_lag_in_time_is_that_of_what_was_written_meanwhile() -> None:
    book = GroupBook()
    book.listed(listings("a"))
    for at in range(11):
        book.looked(float(at), {"a": Summary(1, 30, 10 * at)}, ["a"])
    assert book.groups["a"].delay == Delay(3.0)
    book.looked(11.0, {"a": Summary(1, None)}, ["a"])
    assert book.groups["a"].delay is None
