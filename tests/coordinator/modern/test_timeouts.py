from __future__ import annotations

from kohort.coordinator.modern.timeouts import RETRY_MS, MemberTimer, MemberTimers
from kohort.coordinator.timing_wheel import TimingWheel

SESSION = 45_000


class Watch:
    """MemberTimers, and the members that were late.

    Args:
        of_consequence: whether members that are late are removed.
        stored: whether the records of a removal can be appended.
    """

    def __init__(self, *, of_consequence: bool = True, stored: bool = True) -> None:
        self.wheel = TimingWheel(0)
        self.late: list[tuple[int, str, str]] = []
        self.removed: list[tuple[str, str]] = []
        self.of_consequence = of_consequence
        self.stored = stored
        self.timers = MemberTimers(self.wheel, self.expired)

    def expired(self, timer: MemberTimer, why: str) -> bool:
        self.late.append((self.wheel.now, timer.member_id, why))
        if self.of_consequence and self.stored:
            self.removed.append((timer.group_id, timer.member_id))
        return self.of_consequence

    def until(self, now: int) -> None:
        while (due := self.wheel.next_deadline()) is not None and due <= now:
            self.wheel.advance(due)
            while self.removed:
                self.timers.stop(*self.removed.pop())
        self.wheel.advance(now)


def test_silence_expires_a_session_and_not_before() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.until(SESSION - 1)
    assert watch.late == []
    watch.until(SESSION)
    assert [entry[:2] for entry in watch.late] == [(SESSION, "m")]
    assert len(watch.timers) == 0


def test_a_sign_of_life_begins_a_session_anew() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.until(SESSION - 1)
    watch.timers.reset_session_timeout("g", "m", SESSION - 1, SESSION)
    watch.until(2 * SESSION - 2)
    assert watch.late == []
    watch.until(2 * SESSION - 1)
    assert [entry[:2] for entry in watch.late] == [(2 * SESSION - 1, "m")]


def test_a_sign_of_life_touches_no_timer() -> None:
    watch = Watch()
    timer = watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    deadline = timer.deadline
    watch.timers.reset_session_timeout("g", "m", 1_000, SESSION)
    assert timer.deadline == deadline and len(watch.wheel) == 1


def test_a_shorter_session_counts_at_once() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.reset_session_timeout("g", "m", 1_000, 10_000)
    watch.until(11_000)
    assert [entry[:2] for entry in watch.late] == [(11_000, "m")]


def test_a_revocation_that_is_not_confirmed_expires_though_the_member_is_heard() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.start_rebalance_timeout("g", "m", 7, 20_000)
    watch.until(10_000)
    watch.timers.reset_session_timeout("g", "m", 10_000, SESSION)
    watch.until(19_999)
    assert watch.late == []
    watch.until(20_000)
    ((when, member, why),) = watch.late
    assert (when, member) == (20_000, "m") and "epoch 7" in why


def test_a_confirmed_revocation_is_waited_for_no_longer() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.start_rebalance_timeout("g", "m", 7, 20_000)
    watch.timers.stop_rebalance_timeout("g", "m")
    watch.until(SESSION - 1)
    assert watch.late == []
    watch.until(SESSION)
    assert len(watch.late) == 1


def test_an_expiry_without_consequence_leaves_the_session() -> None:
    watch = Watch(of_consequence=False)
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.start_rebalance_timeout("g", "m", 7, 20_000)
    watch.until(SESSION - 1)
    assert len(watch.late) == 1 and len(watch.timers) == 1


def test_a_removal_that_could_not_be_stored_is_tried_again() -> None:
    watch = Watch(stored=False)
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.until(SESSION)
    watch.stored = True
    watch.until(SESSION + RETRY_MS - 1)
    assert len(watch.late) == 1 and len(watch.timers) == 1
    watch.until(SESSION + RETRY_MS)
    assert len(watch.late) == 2 and len(watch.timers) == 0


def test_who_is_heard_of_after_a_removal_that_could_not_be_stored_has_a_whole_session() -> None:
    watch = Watch(stored=False)
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.until(SESSION)
    watch.timers.reset_session_timeout("g", "m", SESSION, SESSION)
    watch.until(2 * SESSION - 1)
    assert len(watch.late) == 1


def test_a_member_that_is_gone_is_watched_no_longer() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.stop("g", "m")
    assert len(watch.wheel) == 0 and watch.timers.get("g", "m") is None


def test_members_of_different_groups_are_different() -> None:
    watch = Watch()
    watch.timers.reset_session_timeout("g", "m", 0, SESSION)
    watch.timers.reset_session_timeout("h", "m", 5, SESSION)
    watch.until(SESSION)
    assert len(watch.late) == 1
