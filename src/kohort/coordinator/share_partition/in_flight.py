"""In-flight batches: records between a share partition's start and end offset, by the batches they were fetched in.

A batch is one run as long as all its records share a fate. It splits into runs where that ends, and where neighbours
are equal again they become one run. So there is never an object for a record of a batch that is acknowledged whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter

from kohort.coordinator.share_partition.locks import Lock
from kohort.coordinator.share_partition.states import RecordState

__all__ = ["InFlightBatch", "InFlightBatches", "Run"]

_FIRST = attrgetter("first")


class Run:
    """Neighbouring records of a batch in one state.

    Attributes:
        lock: of the member that has acquired them; None unless ACQUIRED.
        pending: the state they are in once the change under way is committed; None if there is none.
    """

    __slots__ = ("delivery_count", "first", "last", "lock", "pending", "state")

    def __init__(
        self, first: int, last: int, state: RecordState, delivery_count: int = 0, lock: Lock | None = None
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.lock = lock
        self.pending: RecordState | None = None

    @property
    def records(self) -> int:
        return self.last - self.first + 1

    def equals(self, other: Run) -> bool:
        """Whether both can be one run, if they are neighbours."""
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.lock is other.lock
            and self.pending is None
            and other.pending is None
        )


class InFlightBatch:
    """Records that were fetched together.

    Attributes:
        runs: its records, by offset, without gaps.
        never_fetched: what was persisted tells nothing of these offsets. They are acquired like new ones.
        listed: whether it is listed among the batches that may have available records.
    """

    __slots__ = ("first", "last", "listed", "never_fetched", "runs")

    def __init__(self, runs: list[Run], *, never_fetched: bool = False) -> None:
        self.first = runs[0].first
        self.last = runs[-1].last
        self.runs = runs
        self.never_fetched = never_fetched
        self.listed = False

    @property
    def records(self) -> int:
        return self.last - self.first + 1

    def between(self, first: int, last: int) -> list[Run]:
        """The runs with any of these offsets."""
        runs = self.runs
        if len(runs) == 1:
            return runs if runs[0].first <= last and runs[0].last >= first else []
        begin = max(bisect_right(runs, first, key=_FIRST) - 1, 0)
        return [run for run in runs[begin : bisect_right(runs, last, key=_FIRST)] if run.last >= first]

    def cut_out(self, first: int, last: int) -> list[Run]:
        """The runs of exactly these of its offsets; those that reach beyond are split. None of them is pending."""
        if first <= self.first and last >= self.last:
            return list(self.runs)
        begin = self._cut(max(first, self.first))
        end = self._cut(last + 1) if last < self.last else len(self.runs)
        return self.runs[begin:end]

    def join(self, first: int, last: int) -> None:
        """Makes equal neighbours one run, among those with these offsets and the next to them."""
        runs = self.runs
        if len(runs) == 1:
            return
        index = max(bisect_right(runs, first, key=_FIRST) - 2, 0)
        end = min(bisect_right(runs, last, key=_FIRST) + 1, len(runs))
        joined: list[Run] = [runs[index]]
        for run in runs[index + 1 : end]:
            if joined[-1].equals(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        runs[index:end] = joined

    def trim(self, start: int) -> list[tuple[Run, int]]:
        """Forgets what is before an offset of its own: the runs that lost records, and how many; empty runs too."""
        lost: list[tuple[Run, int]] = []
        empty = 0
        for run in self.runs:
            if run.first >= start:
                break
            begin = min(start, run.last + 1)
            lost.append((run, begin - run.first))
            run.first = begin
            empty += run.last < begin
        del self.runs[:empty]
        self.first = start
        return lost

    def _cut(self, offset: int) -> int:
        """The index of the run that begins at an offset, splitting the one it is within."""
        runs = self.runs
        index = bisect_right(runs, offset, key=_FIRST) - 1
        run = runs[index]
        if run.first == offset:
            return index
        runs.insert(index + 1, Run(offset, run.last, run.state, run.delivery_count, run.lock))
        run.last = offset - 1
        return index + 1


class InFlightBatches:
    """The batches by offset, without overlaps; between two there may be offsets that no fetch ever returned.

    Finding takes O(log n). Adding one at the end is O(1); elsewhere pointers move, which at the few thousand batches
    that `max_record_locks` allows is less than finding.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[-1]

    def at(self, offset: int) -> InFlightBatch | None:
        """The batch that has the offset."""
        index = bisect_right(self._firsts, offset) - 1
        return self._batches[index] if index >= 0 and self._batches[index].last >= offset else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches with any of these offsets."""
        begin = bisect_right(self._firsts, first) - 1
        if begin < 0 or self._batches[begin].last < first:
            begin += 1
        return self._batches[begin : bisect_right(self._firsts, last)]

    def add(self, batch: InFlightBatch) -> None:
        """Adds a batch whose offsets no other has."""
        if not self._firsts or batch.first > self._firsts[-1]:
            self._firsts.append(batch.first)
            self._batches.append(batch)
            return
        index = bisect_left(self._firsts, batch.first)
        self._firsts.insert(index, batch.first)
        self._batches.insert(index, batch)

    def remove(self, batch: InFlightBatch) -> None:
        index = bisect_left(self._firsts, batch.first)
        del self._firsts[index], self._batches[index]

    def drop_before(self, offset: int) -> list[tuple[Run, int]]:
        """Forgets all before an offset: the runs that lost records, and how many."""
        count = bisect_left(self._firsts, offset)
        if not count:
            return []
        lost: list[tuple[Run, int]] = []
        last = self._batches[count - 1]
        if last.last >= offset:
            count -= 1
        for batch in self._batches[:count]:
            for run in batch.runs:
                lost.append((run, run.records))
                run.first = run.last + 1
        del self._firsts[:count], self._batches[:count]
        if last.last >= offset:
            lost += last.trim(offset)
            self._firsts[0] = offset
        return lost
