from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kohort.spark.state.readers_writer_lock import ReadersWriterLock

from ...waiting import eventually


class GoneError(Exception):
    pass


class Visitor:
    """A thread that asks for access, and has it until it is told to leave."""

    def __init__(self, access: Callable[[], AbstractContextManager[None]]) -> None:
        self.inside, self.leaving = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._access = access
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    def _visit(self) -> None:
        try:
            with self._access():
                self.inside.set()
                assert self.leaving.wait(20)
        except BaseException as error:
            self.error = error

    def leave(self) -> None:
        self.leaving.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def lock() -> ReadersWriterLock:
    return ReadersWriterLock(GoneError)


def entered(visitor: Visitor) -> bool:
    return visitor.inside.wait(20)


def waits(visitor: Visitor, lock: ReadersWriterLock) -> bool:
    """Whether it waits for the lock's condition, and isn't in."""
    eventually(lambda: lock._changed._waiters, what="a thread waits")  # type: ignore[attr-defined]
    return not visitor.inside.is_set()


def test_many_share_it(lock: ReadersWriterLock) -> None:
    several = [Visitor(lock.shared) for _ in range(3)]
    assert all(map(entered, several))
    for each in several:
        each.leave()


def test_who_has_it_alone_waits_for_those_who_share_and_goes_before_those_who_come(lock: ReadersWriterLock) -> None:
    first = Visitor(lock.shared)
    assert entered(first)
    alone = Visitor(lock.exclusive)
    assert waits(alone, lock)
    later = Visitor(lock.shared)
    eventually(lambda: len(lock._changed._waiters) == 2, what="both wait")  # type: ignore[attr-defined]
    first.leave()
    assert entered(alone) and not later.inside.is_set()
    alone.leave()
    assert entered(later)
    later.leave()


def test_only_one_at_a_time_has_it_alone(lock: ReadersWriterLock) -> None:
    first = Visitor(lock.exclusive)
    assert entered(first)
    second = Visitor(lock.exclusive)
    assert waits(second, lock)
    first.leave()
    assert entered(second)
    second.leave()


def test_closing_lets_nobody_in_and_waits_until_all_are_out(lock: ReadersWriterLock) -> None:
    inside = Visitor(lock.shared)
    assert entered(inside)
    closed: list[bool] = []
    closing = threading.Thread(target=lambda: closed.append(lock.close()))
    closing.start()
    eventually(lambda: lock.closed, what="it is closed")
    for access in (lock.shared, lock.exclusive):
        with pytest.raises(GoneError), access():
            pass
    with pytest.raises(GoneError):
        lock.check_open()
    assert not lock.close() and not closed
    inside.leave()
    closing.join(20)
    assert closed == [True]


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
def test_closing_wakes_those_who_wait(lock: ReadersWriterLock, kind: str) -> None:
    inside = Visitor(lock.exclusive)
    assert entered(inside)
    waiting = Visitor(getattr(lock, kind))
    assert waits(waiting, lock)
    closing = threading.Thread(target=lock.close)
    closing.start()
    eventually(lambda: waiting.error, what="it is woken, though another is still in")
    assert isinstance(waiting.error, GoneError) and closing.is_alive()
    inside.leave()
    closing.join(20)
    assert not closing.is_alive()


def test_an_error_within_gives_the_access_back(lock: ReadersWriterLock) -> None:
    for access in (lock.shared, lock.exclusive):
        with pytest.raises(KeyError), access():
            raise KeyError
    with lock.exclusive():
        pass
    assert lock.close()
