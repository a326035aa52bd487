"""The judge of share groups notices what it is there for."""

from __future__ import annotations

import pytest

from .share_judge import Member, judge

LIMIT = 3


def received(at: int, count: int = 1, offset: int = 0) -> dict[str, object]:
    return {"at": at, "event": "received", "partition": 0, "offset": offset, "count": count}


def settled(at: int, how: str = "accepted", offset: int = 0) -> dict[str, object]:
    return {"at": at, "event": "settled", "partition": 0, "offset": offset, "how": how}


def member(*events: dict[str, object], started: int = 0, ended: int | None = None) -> Member:
    return Member(events, started, ended)


GOOD = {
    "accepted": ([member(received(1), settled(2))], []),
    "rejected": ([member(received(1), settled(2, "rejected"))], []),
    "released, then accepted": (
        [member(received(1), settled(2, "released")), member(received(3, 2), settled(4))], [],
    ),
    "released up to the limit": (
        [member(*(event for n in (1, 2, 3) for event in (received(2 * n, n), settled(2 * n + 1, "released"))))], [],
    ),
    "given again as it was when its member was killed": (
        [member(received(1), ended=2), member(received(3), settled(4))], [],
    ),
    "told of after the broker's crash by who had it before": (
        [member(received(6)), member(received(4), settled(5))], [2],
    ),
}  # fmt: skip
OUTCOMES = {
    "rejected": "rejected",
    "released up to the limit": "archived",
}
BAD = {
    "never delivered": ([member()], []),
    "delivered again after it was accepted": ([member(received(1), settled(2)), member(received(3, 2))], []),
    "delivered again after it was rejected": ([member(received(1), settled(2, "rejected"), received(3, 2))], []),
    "beyond the limit": ([member(*(received(n, n) for n in (1, 2, 3, 4)))], []),
    "holds it": ([member(received(1)), member(received(2))], []),
    "settled 2 times": ([member(received(1), settled(2)), member(received(1, 2), settled(3))], []),
    "settled but never received": ([member(received(1)), member(settled(2))], []),
    "never delivered again": ([member(received(1), settled(2, "released"))], []),
    "records that nobody wrote": ([member(received(1), received(1, offset=7), settled(2))], []),
}


@pytest.mark.parametrize("what", GOOD)
def test_what_is_right(what: str) -> None:
    members, crashes = GOOD[what]
    assert judge(members, crashes, {0: 1}, LIMIT) == {OUTCOMES.get(what, "accepted"): 1}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong(what: str) -> None:
    members, crashes = BAD[what]
    with pytest.raises(AssertionError, match=what):
        judge(members, crashes, {0: 1}, LIMIT)


def test_a_crash_long_ago_excuses_no_second_holder() -> None:
    members = [member(received(4), started=3), member(received(6), started=3)]
    with pytest.raises(AssertionError, match="holds it"):
        judge(members, [2], {0: 1}, LIMIT)


def test_a_released_record_may_have_gone_to_a_member_that_was_killed() -> None:
    released = member(received(1), settled(2, "released"))
    assert judge([released, member(ended=3)], [], {0: 1}, LIMIT) == {"open": 1}
    with pytest.raises(AssertionError, match="never delivered again"):
        judge([released, member(ended=1)], [], {0: 1}, LIMIT)


def test_a_record_whose_member_was_killed_is_open() -> None:
    assert judge([member(received(1), ended=2)], [], {0: 1}, LIMIT) == {"open": 1}
