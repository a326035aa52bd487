"""The window of a share partition: the batches from its start to its end offset, with all that is counted of them."""

from __future__ import annotations

from heapq import heappop, heappush

from kohort.coordinator.share_partition.in_flight import InFlightBatch, InFlightBatches, Run
from kohort.coordinator.share_partition.locks import Lock, Locks
from kohort.coordinator.share_partition.persisted import PersistedState, StateBatch
from kohort.coordinator.share_partition.states import Event, RecordState, is_terminal, next_state

__all__ = ["Window"]


class Window:
    """What is in flight.

    Attributes:
        start_offset: all before it is done; it never goes back.
        complete: how many records have a terminal state, or will have it once the changes under way are committed.
        unwritten: offsets whose state isn't persisted as it is, and that no change under way writes; they may overlap.
    """

    def __init__(self, persisted: PersistedState, start_offset: int) -> None:
        """Raises ValueError if the persisted batches contradict each other or have unknown states."""
        self.start_offset = start_offset
        self.batches = InFlightBatches()
        self.locks = Locks()
        self.complete = 0
        self.unwritten: list[tuple[int, int]] = []
        self._available: list[int] = []
        following = start_offset
        for first, last, state, delivery_count in sorted(persisted.batches):
            if first < following or last < first:
                raise ValueError(f"The persisted states have offsets {first} to {last} after offset {following - 1}.")
            if first > following:
                self.add([Run(following, first - 1, RecordState.AVAILABLE)], never_fetched=True)
            state = RecordState(state)
            self.add(
                [Run(first, last, RecordState.AVAILABLE if state is RecordState.ACQUIRED else state, delivery_count)]
            )
            following = last + 1
        self.advance()

    @property
    def end_offset(self) -> int:
        """The last offset in flight; one before the start offset if nothing is."""
        return self.batches.last.last if self.batches else self.start_offset - 1

    @property
    def records(self) -> int:
        return self.end_offset - self.start_offset + 1

    def add(self, runs: list[Run], *, never_fetched: bool = False) -> None:
        """A batch of offsets that weren't in the window."""
        batch = InFlightBatch(runs, never_fetched=never_fetched)
        self.batches.add(batch)
        for run in runs:
            if is_terminal(run.state):
                self.complete += run.records
            elif run.state is RecordState.AVAILABLE:
                self.list_available(batch)

    def carve(self, batch: InFlightBatch, first: int, last: int) -> None:
        """Takes offsets out of a batch that was never fetched."""
        begin, end = batch.first, batch.last
        self.batches.remove(batch)
        if begin < first:
            self.add([Run(begin, first - 1, RecordState.AVAILABLE)], never_fetched=True)
        if last < end:
            self.add([Run(last + 1, end, RecordState.AVAILABLE)], never_fetched=True)

    def list_available(self, batch: InFlightBatch) -> None:
        """To be called when records of a batch become available."""
        if not batch.listed:
            batch.listed = True
            heappush(self._available, batch.first)

    def first_available(self) -> int | None:
        """The first offset of an available record. O(log n), and the runs of its batch."""
        while self._available:
            batch = self.batches.at(self._available[0])
            if batch is not None:
                for run in batch.runs:
                    if run.state is RecordState.AVAILABLE:
                        return run.first
                batch.listed = False
            heappop(self._available)
        return None

    def make_at_once(self, batch: InFlightBatch, first: int, last: int, event: Event) -> None:
        """Moves records of a batch to their next state, which isn't persisted yet. The lock's records leave it."""
        for run in batch.cut_out(first, last):
            self.settle(batch, run, next_state(run.state, event), counted=False)
        self.unwritten.append((first, last))
        batch.join(first, last)

    def settle(self, batch: InFlightBatch, run: Run, state: RecordState, *, counted: bool) -> None:
        """Puts a run in a state without a lock; `counted` says that `complete` knows already."""
        if run.lock is not None:
            self.unlock(run.lock, run.records)
            run.lock = None
        run.state = state
        if state is RecordState.AVAILABLE:
            self.list_available(batch)
        elif not counted and is_terminal(state):
            self.complete += run.records

    def unlock(self, lock: Lock, records: int) -> None:
        self.locks.take_out(lock, records)

    def remove_available(self, first: int, last: int) -> None:
        """A fetch has shown that there are no records at these offsets: those that were available are archived."""
        for batch in self.batches.between(first, last):
            begin, end = max(first, batch.first), min(last, batch.last)
            if batch.never_fetched:
                self.carve(batch, begin, end)
                self.add([Run(begin, end, next_state(RecordState.AVAILABLE, Event.REMOVE))])
                self.unwritten.append((begin, end))
                continue
            for run in list(batch.between(begin, end)):
                if run.state is RecordState.AVAILABLE:
                    self.make_at_once(batch, max(begin, run.first), min(end, run.last), Event.REMOVE)

    def advance(self) -> None:
        """Moves the start offset past all whose delivery is complete."""
        start = self.start_offset
        for batch in self.batches:
            for run in batch.runs:
                if run.pending is not None or not is_terminal(run.state):
                    self.drop_before(run.first)
                    return
            start = batch.last + 1
        self.drop_before(start)

    def drop_before(self, start_offset: int) -> None:
        """Forgets all before an offset, whatever its state, and starts there."""
        self.start_offset = start_offset
        lost = self.batches.drop_before(start_offset)
        for run, records in lost:
            if run.lock is not None:
                self.unlock(run.lock, records)
            if is_terminal(run.state if run.pending is None else run.pending):
                self.complete -= records
        if lost and self.batches:
            batch = self.batches.first
            if batch.listed:  # perhaps under the offset it began with
                heappush(self._available, batch.first)

    def take_unwritten(self) -> list[tuple[int, int]]:
        """The offsets to persist with the next change, by offset and without overlaps."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self.unwritten):
            if last < self.start_offset:
                continue
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((max(first, self.start_offset), last))
        self.unwritten = []
        return merged

    def states(self, first: int, last: int) -> list[StateBatch]:
        """What to persist of these offsets: without locks. What is pending is left to its own change."""
        result: list[StateBatch] = []
        for batch in self.batches.between(first, last):
            for run in batch.between(first, last):
                begin, end = max(first, run.first), min(last, run.last)
                if run.pending is not None:
                    self.unwritten.append((begin, end))  # if that fails, what is persisted isn't what it was before
                elif run.state is RecordState.ACQUIRED:
                    result.append(StateBatch(begin, end, RecordState.AVAILABLE, run.delivery_count - 1))
                else:
                    result.append(StateBatch(begin, end, run.state, run.delivery_count))
        return result
