"""Which of the fetched records a member acquires.

Batches are acquired whole, with all that lies between them: gaps of compaction are the member's to report. The maximum
of records is kept to by whole batches, or in RECORD_LIMIT exactly (KIP-1206). Records that were delivered often are
given in small portions, so that one that nobody can process doesn't take its neighbours with it: from half the
delivery count limit on half a batch, then a quarter; for the last time alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from kohort.coordinator.share_partition.in_flight import InFlightBatch, Run
from kohort.coordinator.share_partition.locks import Lock
from kohort.coordinator.share_partition.settings import AcquireMode, SharePartitionSettings
from kohort.coordinator.share_partition.states import Event, RecordState, next_state
from kohort.coordinator.share_partition.window import Window

__all__ = ["Acquired", "Acquisition"]

_THROTTLE_FROM_AT_LEAST: Final = 2


class Acquired(NamedTuple):
    """Records that a member was given.

    Attributes:
        delivery_count: how often each has been delivered now, at least 1.
    """

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquisition:
    """One member's fetch of one share partition.

    Attributes:
        acquired: what it got, by offset.
        dead_letters: what turned out to have been delivered too often, as the limit was lowered: (first, last, count).
    """

    def __init__(
        self,
        window: Window,
        settings: SharePartitionSettings,
        member_id: str,
        fetched: Sequence[tuple[int, int]],
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        deadline: float,
    ) -> None:
        self.acquired: list[Acquired] = []
        self.dead_letters: list[tuple[int, int, int]] = []
        self._window = window
        self._settings = settings
        self._member_id = member_id
        self._fetched = fetched
        self._room = max_records
        self._batch_size = batch_size
        self._exactly = mode is AcquireMode.RECORD_LIMIT
        self._deadline = deadline
        self._locks: set[Lock] = set()
        self._throttle_from = max(_THROTTLE_FROM_AT_LEAST, (settings.delivery_count_limit + 1) // 2)

    def acquire(self, fetch_offset: int) -> None:
        window = self._window
        first, last = self._fetched[0][0], self._fetched[-1][1]
        if last < window.start_offset or self._room <= 0:
            return
        spare = self._settings.max_record_locks - window.records
        if spare <= 0:  # only what is in flight already can be acquired
            last = min(last, window.end_offset)
            if last < fetch_offset:
                return
        else:
            self._room = min(self._room, spare)
        if fetch_offset < first:
            window.remove_available(fetch_offset, first - 1)
        first = max(first, window.start_offset)
        for batch in window.batches.between(first, last):
            if self._room <= 0:
                return
            begin, end = max(first, batch.first), min(last, batch.last)
            if batch.never_fetched:
                self._new(begin, end, batch)
            elif not self._again(batch, begin, end):
                return
        first = max(first, window.end_offset + 1)
        if self._room > 0 and first <= last:
            self._new(first, last, None)

    def remove(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Takes back what it got of these offsets: they belong to aborted transactions."""
        for first, last in ranges:
            for batch in self._window.batches.between(first, last):
                for run in list(batch.between(first, last)):
                    if run.lock in self._locks:
                        self._window.make_at_once(batch, max(first, run.first), min(last, run.last), Event.REMOVE)
        self.acquired = _without(self.acquired, ranges)

    def _new(self, first: int, last: int, never_fetched: InFlightBatch | None) -> None:
        """Acquires offsets that no member has had: as batches of the wanted size, cut where the log's batches are."""
        if self._room < last - first + 1:
            last = min(last, self._end_of_log_batch(first + self._room - 1))
        if never_fetched is not None:
            self._window.carve(never_fetched, first, last)
        if self._exactly:
            acquired = min(last, first + self._room - 1)
            rest = [Run(acquired + 1, last, RecordState.AVAILABLE)] if acquired < last else []
            self._window.add([self._held(first, acquired), *rest])
            return
        begin = first
        if last - first >= self._batch_size:
            for base, _ in self._fetched:
                if base > last:
                    break
                if base - begin >= self._batch_size:
                    self._window.add([self._held(begin, base - 1)])
                    begin = base
        self._window.add([self._held(begin, last)])

    def _held(self, first: int, last: int) -> Run:
        lock = self._lock(first, last)
        self.acquired.append(Acquired(first, last, 1))
        self._room -= last - first + 1
        return Run(first, last, next_state(RecordState.AVAILABLE, Event.ACQUIRE), 1, lock)

    def _again(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Acquires what is available of a batch; whether more may be acquired after it."""
        limit = self._settings.delivery_count_limit
        available: list[Run] = []
        for run in list(batch.between(first, last)):
            if run.state is not RecordState.AVAILABLE:
                continue
            if run.delivery_count < limit:
                available.append(run)
            else:
                self._exhaust(batch, max(first, run.first), min(last, run.last), run.delivery_count)
        if not available:
            return True
        throttled = max(run.delivery_count for run in available) >= self._throttle_from
        if throttled and self.acquired:
            return False
        whole = len(batch.runs) == 1 and first == batch.first and last == batch.last
        if whole and not throttled and not (self._exactly and batch.records > self._room):
            self._take(batch, first, last, joins=False)
            return True
        return not self._portion(batch, available, first, last) or not throttled

    def _portion(self, batch: InFlightBatch, available: list[Run], first: int, last: int) -> int:
        """Acquires of a batch what is available and may be given together; how many records that is."""
        limit = self._settings.delivery_count_limit
        taken = 0
        most: int | None = None
        for run in available:
            begin, end = max(first, run.first), min(last, run.last)
            wanted = end - begin + 1
            if run.delivery_count >= self._throttle_from and most is None:
                most = max(1, batch.records >> (run.delivery_count - self._throttle_from + 1))
            if most is not None:
                wanted = min(wanted, most - taken)
            if self._exactly:
                wanted = min(wanted, self._room)
            alone = limit > 2 and run.delivery_count == limit - 1
            if wanted <= 0 or (alone and taken):
                break
            if alone:
                wanted = 1
            self._take(batch, begin, begin + wanted - 1, joins=taken > 0)
            taken += wanted
            if alone or begin + wanted <= end:
                break
        return taken

    def _take(self, batch: InFlightBatch, first: int, last: int, *, joins: bool) -> None:
        for run in batch.cut_out(first, last):
            run.state = next_state(run.state, Event.ACQUIRE)
            run.delivery_count += 1
            run.lock = self._lock(run.first, run.last)
            following = Acquired(run.first, run.last, run.delivery_count)
            previous = self.acquired[-1] if joins else None
            if previous and previous.last_offset + 1 == run.first and previous.delivery_count == run.delivery_count:
                self.acquired[-1] = previous._replace(last_offset=run.last)
            else:
                self.acquired.append(following)
        self._room -= last - first + 1

    def _exhaust(self, batch: InFlightBatch, first: int, last: int, delivery_count: int) -> None:
        if self._settings.dead_letters:
            self.dead_letters.append((first, last, delivery_count))
            self._window.make_at_once(batch, first, last, Event.DEAD_LETTER)
        else:
            self._window.make_at_once(batch, first, last, Event.EXHAUST)

    def _lock(self, first: int, last: int) -> Lock:
        lock = self._window.locks.add(self._member_id, first, last, self._deadline)
        self._locks.add(lock)
        return lock

    def _end_of_log_batch(self, offset: int) -> int:
        """The last offset of the fetched batch that has this one; the offset itself if none has."""
        index = bisect_right(self._fetched, offset, key=lambda batch: batch[0]) - 1
        return max(offset, self._fetched[index][1]) if index >= 0 else offset


def _without(acquired: list[Acquired], ranges: Sequence[tuple[int, int]]) -> list[Acquired]:
    """What is left without some ranges; both are by offset."""
    result: list[Acquired] = []
    index = 0
    for each in acquired:
        first, last, delivery_count = each
        while index < len(ranges) and ranges[index][1] < first:
            index += 1
        following = index
        while following < len(ranges) and ranges[following][0] <= last:
            if first < ranges[following][0]:
                result.append(Acquired(first, ranges[following][0] - 1, delivery_count))
            first = ranges[following][1] + 1
            following += 1
        if first <= last:
            result.append(Acquired(first, last, delivery_count))
    return result
