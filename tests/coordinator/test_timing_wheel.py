from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.timing_wheel import Timer, TimingWheel

START = 1_700_000_000_123


def test_a_timer_runs_at_its_deadline_and_not_before() -> None:
    wheel = TimingWheel(START)
    ran: list[str] = []
    timer = wheel.add(START + 45_000, lambda: ran.append("timer"))
    assert wheel.advance(START + 44_999) == 0 and timer.waiting
    assert wheel.advance(START + 45_000) == 1 and not timer.waiting
    assert ran == ["timer"]


def test_timers_run_in_the_order_of_deadlines_and_equal_ones_as_they_were_added() -> None:
    wheel = TimingWheel(START)
    ran: list[int] = []
    for number, delay in enumerate([70_000, 5, 70_000, 64, 63, 4096, 5]):
        wheel.add(START + delay, lambda number=number: ran.append(number))  # type: ignore[misc]
    wheel.advance(START + 100_000)
    assert ran == [1, 6, 4, 3, 5, 0, 2]


def test_a_cancelled_timer_does_not_run() -> None:
    wheel = TimingWheel(START)
    timer = wheel.add(START + 10, lambda: pytest.fail("was cancelled"))
    assert timer.cancel() and not timer.cancel()
    assert len(wheel) == 0 and wheel.next_deadline() is None
    assert wheel.advance(START + 100) == 0


def test_a_callback_cancels_another_timer_of_the_same_moment() -> None:
    wheel = TimingWheel(START)
    wheel.add(START + 10, lambda: victim.cancel())
    victim = wheel.add(START + 10, lambda: pytest.fail("was cancelled"))
    assert wheel.advance(START + 10) == 1


def test_a_deadline_in_the_past_runs_at_the_next_advance() -> None:
    wheel = TimingWheel(START)
    ran: list[str] = []
    wheel.add(START - 5_000, lambda: ran.append("late"))
    assert wheel.next_deadline() == START
    wheel.advance(START)
    assert ran == ["late"]


def test_timers_that_callbacks_add_run_in_the_same_advance_if_due() -> None:
    wheel = TimingWheel(START)
    ran: list[int] = []

    def again() -> None:
        ran.append(len(ran))
        if len(ran) < 5:
            wheel.add(START + 100 * len(ran), again)

    wheel.add(START, again)
    assert wheel.advance(START + 350) == 4
    assert wheel.next_deadline() is not None and len(wheel) == 1


def test_a_callback_that_raises_leaves_the_others_due() -> None:
    wheel = TimingWheel(START)
    ran: list[str] = []
    wheel.add(START + 1, lambda: [][0])
    wheel.add(START + 1, lambda: ran.append("other"))
    with pytest.raises(IndexError):
        wheel.advance(START + 1)
    assert wheel.advance(START + 1) == 1
    assert ran == ["other"]


def test_a_coarse_wheel_is_late_by_less_than_a_tick() -> None:
    wheel = TimingWheel(1_000, tick_ms=10)
    ran: list[str] = []
    wheel.add(1_001, lambda: ran.append("timer"))
    assert wheel.advance(1_009) == 0
    assert wheel.next_deadline() == 1_010
    assert wheel.advance(1_010) == 1


def test_a_hundred_thousand_idle_timers_cost_nothing() -> None:
    wheel = TimingWheel(START)
    for number in range(100_000):
        wheel.add(START + 45_000 + number % 1_000, lambda: pytest.fail("not due"))
    wakes = 0
    while (due := wheel.next_deadline()) is not None and due < START + 44_000:
        wheel.advance(due)
        wakes += 1
    assert wakes < 30


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(0, 64), (1, 1), (1, 48)])
def test_a_wheel_has_a_tick_and_a_power_of_two_of_buckets(tick_ms: int, wheel_size: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        TimingWheel(0, tick_ms, wheel_size)


delays = st.one_of(st.integers(-10, 70), st.integers(0, 5_000), st.integers(0, 10_000_000))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), delays), st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("advance"), delays.map(abs)), st.tuples(st.just("next"), st.just(0)),
    ),
    max_size=60,
)  # fmt: skip


@given(actions, st.sampled_from([2, 4, 64]), st.integers(0, 1 << 42))
def test_the_wheel_does_what_a_sorted_list_would(actions: list[tuple[str, int]], wheel_size: int, now: int) -> None:
    wheel = TimingWheel(now, wheel_size=wheel_size)
    ran: list[int] = []
    timers: list[Timer] = []
    waiting: dict[int, int] = {}
    for action, argument in actions:
        if action == "add":
            number = len(timers)
            timers.append(wheel.add(now + argument, lambda number=number: ran.append(number)))  # type: ignore[misc]
            waiting[number] = now + argument
        elif action == "cancel" and argument < len(timers):
            assert timers[argument].cancel() == (waiting.pop(argument, None) is not None)
        elif action == "next":
            due = wheel.next_deadline()
            assert (due is None) == (not waiting)
            if due is not None:
                assert due <= max(now, min(waiting.values()))
        elif action == "advance":
            now += argument
            ran.clear()
            expected = sorted((deadline, number) for number, deadline in waiting.items() if deadline <= now)
            assert wheel.advance(now) == len(expected)
            assert {number for _, number in expected} == set(ran)
            for _, number in expected:
                del waiting[number]
        assert len(wheel) == len(waiting)
    for timer in timers:
        timer.cancel()
    assert wheel.next_deadline() is None


@given(st.lists(delays, max_size=40), st.integers(0, 1 << 42))
def test_going_from_deadline_to_deadline_runs_each_timer_on_time(delays: list[int], now: int) -> None:
    wheel = TimingWheel(now, wheel_size=4)
    late: list[int] = []
    clock = now

    def check(deadline: int) -> None:
        late.append(clock - max(deadline, now))

    for delay in delays:
        wheel.add(now + delay, lambda deadline=now + delay: check(deadline))  # type: ignore[misc]
    while (due := wheel.next_deadline()) is not None:
        assert due >= clock
        clock = due
        wheel.advance(clock)
    assert late == [0] * len(delays)
