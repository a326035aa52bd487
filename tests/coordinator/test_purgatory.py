from __future__ import annotations

from collections import Counter
from collections.abc import Generator

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.coordinator.purgatory import MANY_KEYS, DelayedOperation, Purgatory
from kohort.coordinator.timing_wheel import TimingWheel


class Wait(DelayedOperation):
    """Waits for `ready`, and keeps a diary."""

    def __init__(self, deadline: int) -> None:
        super().__init__(deadline)
        self.ready = False
        self.diary: list[str] = []

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.diary.append("complete")

    def on_expiration(self) -> None:
        self.diary.append("expired")


def a_purgatory() -> tuple[Purgatory, TimingWheel]:
    wheel = TimingWheel(0)
    return Purgatory("test", wheel), wheel


def test_what_can_be_completed_at_once_is_not_watched() -> None:
    purgatory, wheel = a_purgatory()
    wait = Wait(100)
    wait.ready = True
    assert purgatory.try_complete_else_watch(wait, ["a"])
    assert wait.diary == ["complete"]
    assert (purgatory.watched, purgatory.delayed, len(wheel)) == (0, 0, 0)


def test_an_event_completes_what_it_makes_ready() -> None:
    purgatory, wheel = a_purgatory()
    ready, waiting = Wait(100), Wait(100)
    for operation in (ready, waiting):
        assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    ready.ready = True
    assert purgatory.check_and_complete("b") == 1
    assert (ready.diary, waiting.diary) == (["complete"], [])
    assert (purgatory.watched, purgatory.delayed, len(wheel)) == (2, 1, 1)


def in_slices(purgatory: Purgatory, operation: Wait, count: int) -> Generator[None, None, None]:
    return purgatory.watch_in_slices(operation, (f"key {number}" for number in range(count)))


def test_very_many_keys_are_watched_and_released_in_slices() -> None:
    purgatory, wheel = a_purgatory()
    wait, other = Wait(100), Wait(200)
    count = 10 * MANY_KEYS
    assert sum(1 for _ in in_slices(purgatory, wait, count)) >= 9
    purgatory.try_complete_else_watch(other, ["key 1"])
    assert (purgatory.watched, purgatory.delayed) == (count + 1, 2)
    wheel.advance(100)
    assert wait.diary == ["complete", "expired"]
    assert purgatory.delayed == 1
    wait.ready = other.ready = True
    assert purgatory.check_and_complete("key 0") == 0  # it is complete, and still under the key
    assert purgatory.check_and_complete("key 1") == 1
    assert sum(1 for _ in purgatory.release_in_slices(wait)) >= 9
    assert (purgatory.watched, purgatory.delayed, len(wheel)) == (0, 0, 0)


def test_what_is_completed_while_it_is_put_under_its_keys_goes_under_no_more() -> None:
    purgatory, _ = a_purgatory()
    wait = Wait(100)
    watching = in_slices(purgatory, wait, 10 * MANY_KEYS)
    next(watching)
    wait.ready = True
    assert purgatory.check_and_complete("key 0") == 1
    assert list(watching) == []
    assert list(purgatory.release_in_slices(wait)) == []
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_few_keys_are_released_at_once_and_a_cancelled_operation_from_all() -> None:
    purgatory, wheel = a_purgatory()
    few, many = Wait(100), Wait(100)
    list(in_slices(purgatory, few, 3))
    few.force_complete()
    assert purgatory.watched == 0
    list(in_slices(purgatory, many, 2 * MANY_KEYS))
    assert purgatory.cancel("key 1") == [many]
    assert (purgatory.watched, purgatory.delayed, len(wheel)) == (0, 0, 0)


def test_an_event_under_another_key_completes_nothing() -> None:
    purgatory, _ = a_purgatory()
    wait = Wait(100)
    purgatory.try_complete_else_watch(wait, ["a"])
    wait.ready = True
    assert purgatory.check_and_complete("b") == 0
    assert wait.diary == []


def test_the_deadline_completes_and_then_expires() -> None:
    purgatory, wheel = a_purgatory()
    wait = Wait(100)
    purgatory.try_complete_else_watch(wait, ["a"])
    wheel.advance(100)
    assert wait.diary == ["complete", "expired"]
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_only_the_first_completion_counts() -> None:
    purgatory, wheel = a_purgatory()
    wait = Wait(100)
    purgatory.try_complete_else_watch(wait, ["a"])
    assert wait.force_complete() and not wait.force_complete()
    assert wheel.advance(100) == 0
    assert wait.diary == ["complete"]


def test_cancelling_takes_operations_out_uncompleted() -> None:
    purgatory, wheel = a_purgatory()
    wait = Wait(100)
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.cancel("a") == [wait]
    assert purgatory.check_and_complete("b") == 0 and wheel.advance(100) == 0
    assert wait.diary == [] and not wait.completed
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_completing_one_may_complete_the_others_of_its_key() -> None:
    purgatory, _ = a_purgatory()

    class Chain(Wait):
        def on_complete(self) -> None:
            super().on_complete()
            for other in chain:
                other.ready = True
            purgatory.check_and_complete("a")

    chain = [Chain(100) for _ in range(5)]
    for operation in chain:
        purgatory.try_complete_else_watch(operation, ["a"])
    chain[2].ready = True
    purgatory.check_and_complete("a")
    assert [operation.diary for operation in chain] == [["complete"]] * 5
    assert purgatory.watched == 0


class PurgatoryMachine(RuleBasedStateMachine):
    """Any mix of events: each operation completes once, none late, and nothing stays behind."""

    def __init__(self) -> None:
        super().__init__()
        self.purgatory, self.wheel = a_purgatory()
        self.now = 0
        self.waits: list[Wait] = []
        self.keys: dict[Wait, set[int]] = {}

    @rule(delay=st.integers(0, 200), keys=st.sets(st.integers(0, 3), min_size=1), ready=st.booleans())
    def watch(self, delay: int, keys: set[int], ready: bool) -> None:
        wait = Wait(self.now + delay)
        wait.ready = ready
        self.waits.append(wait)
        assert self.purgatory.try_complete_else_watch(wait, keys) == ready
        if not ready:
            self.keys[wait] = keys

    @rule(data=st.data(), key=st.integers(0, 3))
    def event(self, data: st.DataObject, key: int) -> None:
        ready = data.draw(st.sets(st.sampled_from(list(self.keys)))) if self.keys else set()
        for wait in ready:
            wait.ready = True
        expected = [wait for wait, keys in self.keys.items() if key in keys and wait.ready]
        assert self.purgatory.check_and_complete(key) == len(expected)
        for wait in expected:
            del self.keys[wait]

    @rule(data=st.data())
    def force(self, data: st.DataObject) -> None:
        if self.waits:
            wait = data.draw(st.sampled_from(self.waits))
            assert wait.force_complete() == (self.keys.pop(wait, None) is not None)

    @rule(by=st.integers(0, 100))
    def advance(self, by: int) -> None:
        self.now += by
        self.wheel.advance(self.now)
        for wait in [wait for wait in self.keys if wait.deadline <= self.now]:
            assert wait.diary == ["complete", "expired"]
            del self.keys[wait]

    @invariant()
    def nothing_is_lost_or_left_behind(self) -> None:
        assert self.purgatory.delayed == len(self.wheel) == len(self.keys)
        assert self.purgatory.watched == sum(map(len, self.keys.values()))
        assert all(wait.completed == (wait not in self.keys) for wait in self.waits)
        assert all(Counter(wait.diary)["complete"] == wait.completed for wait in self.waits)


TestPurgatory = PurgatoryMachine.TestCase
