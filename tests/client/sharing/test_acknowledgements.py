"""The book of a partition's offsets: what is sent, what is settled, and that nothing is lost or sent twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.sharing.acknowledgements import (
    GAP,
    Acknowledgement,
    AcknowledgementBook,
    AcknowledgeType,
    OffsetSpan,
    merged,
)

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
FINAL = (ACCEPT, RELEASE, REJECT)


def book(*spans: tuple[int, int], deadline: float = 100) -> AcknowledgementBook:
    made = AcknowledgementBook()
    for first, last in spans:
        made.acquire(first, last, deadline)
    return made


def test_neighbours_of_one_type_are_sent_as_one_range() -> None:
    held = book((0, 9))
    for offset in (0, 1, 2, 5, 4, 3):
        assert held.acknowledge(offset, offset, ACCEPT, 0) == []
    held.acknowledge(6, 6, REJECT, 0)
    assert list(held.take(0)) == [Acknowledgement(0, 5, ACCEPT), Acknowledgement(6, 6, REJECT)]
    assert held.held() == [OffsetSpan(7, 9)]


def test_offsets_that_are_not_held_are_told() -> None:
    held = book((0, 4), (10, 14))
    assert held.acknowledge(3, 11, ACCEPT, 0) == [OffsetSpan(5, 9)]
    assert held.acknowledge(0, 4, ACCEPT, 0) == [OffsetSpan(3, 4)], "acknowledged before"
    assert list(held.take(0)) == [
        Acknowledgement(0, 4, ACCEPT),
        Acknowledgement(10, 11, ACCEPT),
    ]


def test_what_the_user_did_not_say_is_accepted_and_no_more() -> None:
    held = book((0, 9))
    held.acknowledge(4, 4, REJECT, 0)
    assert held.acknowledge_rest(0, 9, ACCEPT, 0) == []
    assert list(held.take(0)) == [
        Acknowledgement(0, 3, ACCEPT),
        Acknowledgement(4, 4, REJECT),
        Acknowledgement(5, 9, ACCEPT),
    ]


def test_a_session_that_ends_settles_all_that_was_acknowledged_and_keeps_in_mind_what_was_not() -> None:
    held = book((0, 9))
    held.acknowledge(0, 1, ACCEPT, 0)
    held.take(0)
    held.acknowledge(2, 3, RELEASE, 0)
    held.acknowledge_rest(9, 9, GAP, 0)
    assert held.lose() == [Acknowledgement(0, 1, ACCEPT), Acknowledgement(2, 3, RELEASE)]
    assert held.succeeded(0) == (), "a late answer says nothing any more"
    assert held.acknowledge_rest(0, 9, ACCEPT, 0) == [OffsetSpan(4, 8)]
    assert held.acknowledge_rest(0, 9, ACCEPT, 0) == [], "said once"
    assert not held.sendable


def test_a_lock_is_renewed_before_it_ends_and_an_acknowledgement_comes_first() -> None:
    held = book((0, 9), deadline=100)
    held.renew(99, 0)
    assert not held.sendable
    held.renew(100, 0)  # a clock may tell just that time again
    held.acknowledge(3, 3, ACCEPT, 0)
    sent = held.take(0)
    assert list(sent) == [Acknowledgement(0, 2, RENEW), Acknowledgement(3, 3, ACCEPT), Acknowledgement(4, 9, RENEW)]
    held.renew(101, 0)
    assert not held.sendable, "asked for already"
    held.succeeded(200)
    assert held.next_deadline(0) == 200
    assert held.held() == [OffsetSpan(0, 2), OffsetSpan(4, 9)]


def test_a_lock_that_has_ended_does_not_keep_others_from_being_renewed() -> None:
    held = book((0, 4), deadline=50)
    held.acquire(5, 9, 100)
    assert held.next_deadline(60) == 100
    held.renew(101, 60)
    assert list(held.take(60)) == [Acknowledgement(5, 9, RENEW)]
    assert held.next_deadline(100) is None


def test_a_renewal_that_a_broker_does_not_know_leaves_the_lock() -> None:
    held = book((0, 1))
    held.acknowledge(0, 1, RENEW, 0)
    held.take(0)
    assert held.failed(divide=True, keeps_locks=True) == [Acknowledgement(0, 1, RENEW)]
    assert held.acknowledge(0, 1, ACCEPT, 0) == []


def test_a_renewal_that_fails_loses_the_lock() -> None:
    held = book((0, 1))
    held.acknowledge(0, 1, RENEW, 0)
    held.take(0)
    assert held.failed() == [Acknowledgement(0, 1, RENEW)]
    assert held.acknowledge_rest(0, 1, ACCEPT, 0) == [OffsetSpan(0, 1)]


def test_one_bad_range_does_not_spoil_the_others() -> None:
    """The broker takes all of a request or none of it: it's asked again, in halves."""
    held = book((0, 99))
    for offset in range(0, 100, 10):
        held.acknowledge(offset, offset, ACCEPT, 0)
    good: list[Acknowledgement] = []
    bad: list[Acknowledgement] = []
    requests = 0
    while held.sendable:
        sent = held.take(0)
        requests += 1
        if any(each.first == 50 for each in sent):
            bad += held.failed(divide=True)
        else:
            good += held.succeeded(0)
    assert bad == [Acknowledgement(50, 50, ACCEPT)]
    assert sorted(each.first for each in good) == [0, 10, 20, 30, 40, 60, 70, 80, 90]
    assert requests < 10


def test_a_ticket_is_settled_with_what_was_acknowledged_before_it() -> None:
    held = book((0, 9))
    assert held.settled(held.ticket())
    held.acknowledge(0, 0, ACCEPT, 0)
    ticket = held.ticket()
    assert not held.settled(ticket)
    held.take(0)
    held.acknowledge(1, 1, ACCEPT, 0)
    held.retry()
    assert not held.settled(ticket)
    held.take(0)
    held.succeeded(0)
    assert held.settled(ticket) and not held.settled(held.ticket())


def test_memory_and_requests_are_of_ranges_not_of_records() -> None:
    held = book((0, 10**12))
    held.acknowledge_rest(0, 10**12 - 1, ACCEPT, 0)
    assert list(held.take(0)) == [Acknowledgement(0, 10**12 - 1, ACCEPT)]


def test_what_was_acknowledged_too_late_is_not_taken_for_the_next_lock() -> None:
    held = book((0, 9))
    held.acknowledge(0, 5, ACCEPT, 0)
    assert held.acquire(4, 9, 200) == [Acknowledgement(4, 5, ACCEPT)]
    assert list(held.take(0)) == [Acknowledgement(0, 3, ACCEPT)]
    assert held.held() == [OffsetSpan(4, 9)]


def test_merging_keeps_order_and_types() -> None:
    given_ = [Acknowledgement(5, 6, ACCEPT), Acknowledgement(0, 4, ACCEPT), Acknowledgement(7, 7, REJECT)]
    assert merged(given_) == [Acknowledgement(0, 6, ACCEPT), Acknowledgement(7, 7, REJECT)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.sampled_from(AcknowledgeType)), max_size=20))
def test_merging_says_of_each_offset_what_is_final_or_else_that_it_is_renewed(
    ranges: list[tuple[int, int, AcknowledgeType]],
) -> None:
    expected: dict[int, int] = {}
    given_ = []
    for first, more, kind in ranges:
        span = range(first, first + more + 1)
        if kind != RENEW and any(expected.get(offset, RENEW) != RENEW for offset in span):
            continue  # what is final is said once
        given_.append(Acknowledgement(first, first + more, kind))
        for offset in span:
            if kind != RENEW or offset not in expected:
                expected[offset] = kind

    found = merged(given_)

    assert [offset for each in found for offset in range(each.first, each.last + 1)] == sorted(expected)
    assert all(expected[offset] == each.type for each in found for offset in range(each.first, each.last + 1))
    joinable = [a for a, b in pairwise(found) if a.type == b.type and a.last + 1 == b.first]
    assert joinable == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["acquire", "acknowledge", "rest", "renew", "take", "ok", "retry", "fail", "divide", "lose"]
        ),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from(FINAL),
    ),
    max_size=60,
)  # fmt: skip


def offsets(ranges: Iterable[Sequence[int]]) -> list[int]:
    return [offset for first, last, *_ in ranges for offset in range(first, last + 1)]


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_whatever_comes_each_acknowledgement_is_settled_once(steps: list[tuple[str, int, int, int]]) -> None:
    """Against a model that counts single offsets."""
    subject = AcknowledgementBook()
    held: set[int] = set()
    given_: Counter[int] = Counter()  # acknowledged by the user, not settled yet
    settled: Counter[int] = Counter()

    def settle(ranges: Iterable[Acknowledgement]) -> None:
        for offset in offsets(each for each in ranges if not each.renews):
            settled[offset] += 1

    for what, first, length, kind in steps:
        last = first + length
        span = set(range(first, last + 1))
        if what == "acquire":
            settle(subject.acquire(first, last, 100))
            held |= span
        elif what == "acknowledge":
            missing = subject.acknowledge(first, last, kind, 0)
            assert set(offsets(missing)) == span - held
            given_.update(span & held)
            held -= span
        elif what == "rest":
            subject.acknowledge_rest(first, last, kind, 0)
            given_.update(span & held)
            held -= span
        elif what == "renew":
            subject.renew(101, 0)
        elif what == "take" and not subject.in_flight:
            sent = subject.take(0)
            taken = offsets(sent)
            assert taken == sorted(taken), "in order"
            assert len(taken) == len(set(taken)), "no offset twice"
        elif what == "ok":
            settle(subject.succeeded(100))
        elif what == "retry":
            subject.retry()
        elif what in ("fail", "divide"):
            failed = subject.failed(divide=what == "divide")
            held -= set(offsets(each for each in failed if each.renews))
            settle(failed)
        elif what == "lose":
            settle(subject.lose())
            held.clear()
        assert set(offsets(subject.held())) == held
        assert all(settled[offset] <= count for offset, count in given_.items())
    if not subject.in_flight and not subject.sendable:
        assert settled == given_
    while subject.in_flight or subject.sendable:
        if not subject.in_flight:
            subject.take(0)
        settle(subject.succeeded(100))
    assert settled == given_
