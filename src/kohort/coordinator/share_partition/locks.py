"""Acquisition locks: who holds records until when.

A lock covers what a member was given of one batch at one time. Its records leave it one by one or together; without
records it is gone. Finding the next deadline takes O(log n), and there are never more than twice as many entries as
there are locks, whatever the lock duration.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

__all__ = ["Lock", "Locks"]

_SPARE: Final = 64  # so many entries of locks that are gone are nothing to tidy up


class Lock:
    """A member's lock.

    Attributes:
        first, last: no record outside these offsets is covered.
        deadline: in milliseconds; from then on it may expire.
        records: how many records are covered.
    """

    __slots__ = ("deadline", "first", "last", "member_id", "records", "scheduled")

    def __init__(self, member_id: str, first: int, last: int, deadline: float, records: int) -> None:
        self.member_id = member_id
        self.first = first
        self.last = last
        self.deadline = deadline
        self.records = records
        self.scheduled = False


class Locks:
    """The locks of a share partition."""

    def __init__(self) -> None:
        self._by_member: dict[str, dict[Lock, None]] = {}
        self._deadlines: list[tuple[float, int, Lock]] = []
        self._serial = 0
        self._count = 0

    def add(self, member_id: str, first: int, last: int, deadline: float, records: int | None = None) -> Lock:
        """A lock of so many records from the first offset to the last one; of all, if it isn't said."""
        lock = Lock(member_id, first, last, deadline, last - first + 1 if records is None else records)
        self._by_member.setdefault(member_id, {})[lock] = None
        self._count += 1
        self.schedule(lock)
        return lock

    def take_out(self, lock: Lock, records: int) -> None:
        """So many records aren't covered any more."""
        lock.records -= records
        if lock.records or not records:
            return
        held = self._by_member[lock.member_id]
        del held[lock]
        if not held:
            del self._by_member[lock.member_id]
        self._count -= 1
        if len(self._deadlines) > 2 * self._count + _SPARE:
            self._deadlines = [entry for entry in self._deadlines if entry[2].records]
            heapify(self._deadlines)

    def schedule(self, lock: Lock) -> None:
        """Lets it expire when its deadline comes; again, if what kept it from that has failed."""
        if not lock.scheduled:
            lock.scheduled = True
            self._serial += 1
            heappush(self._deadlines, (lock.deadline, self._serial, lock))

    def of(self, member_id: str) -> list[Lock]:
        return list(self._by_member.get(member_id, ()))

    @property
    def next_deadline(self) -> float | None:
        deadlines = self._deadlines
        while deadlines and not deadlines[0][2].records:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def due(self, now: float) -> list[Lock]:
        """Those whose deadline has come; each is returned once, unless it is scheduled again."""
        due: list[Lock] = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            lock = heappop(deadlines)[2]
            lock.scheduled = False
            if lock.records:
                due.append(lock)
        return due
