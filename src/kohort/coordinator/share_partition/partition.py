"""A share partition: which records its group has in flight, with whom, and how often they were delivered (KIP-932).

It decides only. Who uses it reads the log at `next_fetch_offset` and hands in what it read (`acquire`), persists the
changes it gets (`changes.py`), and comes back when `next_lock_deadline` has come. Times are milliseconds of any clock.
Memory grows with the batches in flight, of which `max_record_locks` allows only so many; nothing grows with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kohort.coordinator.share_partition.acknowledging import AckBatch, Acknowledging, release_event
from kohort.coordinator.share_partition.acquiring import Acquired, Acquisition
from kohort.coordinator.share_partition.changes import Cause, Change, DeadLetter, Transition
from kohort.coordinator.share_partition.in_flight import InFlightBatch, Run
from kohort.coordinator.share_partition.persisted import UNKNOWN_START_OFFSET, PersistedState, StateBatch, combined
from kohort.coordinator.share_partition.settings import AcquireMode, SharePartitionSettings
from kohort.coordinator.share_partition.states import Event, RecordState, is_terminal
from kohort.coordinator.share_partition.window import Window

__all__ = ["InFlightRecords", "SharePartition"]


class InFlightRecords(NamedTuple):
    """Neighbouring records in one state, as an administrator sees them.

    Attributes:
        member_id: who has acquired them; None if nobody has.
        locked_until: the deadline of their lock in milliseconds; None if nobody has acquired them.
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str | None
    locked_until: float | None


class SharePartition:
    """The state machine.

    Attributes:
        settings: may be replaced at any time; locks that are held keep their deadlines.
        state_epoch: of the persisted state; goes with every write.
    """

    def __init__(
        self,
        settings: SharePartitionSettings,
        persisted: PersistedState,
        start_offset_if_unknown: int = 0,
    ) -> None:
        """Goes on from what is persisted.

        Args:
            settings: what applies to the group.
            persisted: what the share coordinator has; its start offset may be `UNKNOWN_START_OFFSET`.
            start_offset_if_unknown: where share.auto.offset.reset says that the group starts.

        Raises:
            ValueError: the persisted batches overlap or begin before the start offset.
        """
        self.settings = settings
        self.state_epoch = persisted.state_epoch
        unknown = persisted.start_offset == UNKNOWN_START_OFFSET
        self._window = Window(persisted, start_offset_if_unknown if unknown else persisted.start_offset)
        self._start_unwritten = unknown
        self._new_dead_letters: list[DeadLetter] = []

    # What is known.

    @property
    def start_offset(self) -> int:
        """All records before it are done; it never goes back."""
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """The last offset in flight; one before the start offset if nothing is."""
        return self._window.end_offset

    @property
    def next_fetch_offset(self) -> int | None:
        """Where to read the log for the next `acquire`; None while no more records may be in flight."""
        available = self._window.first_available()
        if available is not None:
            return available
        if self._window.records >= self.settings.max_record_locks:
            return None
        return self._window.end_offset + 1

    @property
    def delivery_complete_count(self) -> int:
        """Records from the start offset on that are acknowledged or archived, with those of changes under way.

        The lag of the group is the log's end offset less the start offset less this.
        """
        return self._window.complete

    @property
    def in_flight_records(self) -> int:
        """How many offsets there are from the start offset to the end offset."""
        return self._window.records

    @property
    def in_flight_batches(self) -> int:
        return len(self._window.batches)

    @property
    def next_lock_deadline(self) -> float | None:
        """When to call `expire_locks` next; None while nothing is acquired."""
        return self._window.locks.next_deadline

    def holds(self, member_id: str) -> bool:
        """Whether a member has acquired any records."""
        return bool(self._window.locks.of(member_id))

    def describe(self) -> list[InFlightRecords]:
        """All that is in flight, by offset; a record whose acknowledgement is under way is still acquired."""
        return [
            InFlightRecords(
                run.first,
                run.last,
                run.state,
                run.delivery_count,
                run.lock.member_id if run.lock else None,
                run.lock.deadline if run.lock else None,
            )
            for batch in self._window.batches
            for run in batch.runs
        ]

    def snapshot(self) -> PersistedState:
        """The state without locks and without changes under way: what is acquired is available as before."""
        window = self._window
        batches: list[StateBatch] = []
        complete = 0
        for batch in window.batches:
            for run in batch.runs:
                state, count = run.state, run.delivery_count
                if state is RecordState.ACQUIRED:
                    state, count = RecordState.AVAILABLE, count - 1
                if state is not RecordState.AVAILABLE or count:
                    batches.append(StateBatch(run.first, run.last, state, count))
                complete += run.records if is_terminal(state) else 0
        return PersistedState(self.state_epoch, window.start_offset, complete, combined(batches))

    def dead_letters(self) -> list[DeadLetter]:
        """All that is ARCHIVING, to be written after a restart. The count tells the cause, which isn't persisted."""
        return [
            DeadLetter(
                run.first,
                run.last,
                Cause.EXHAUSTED if run.delivery_count >= self.settings.delivery_count_limit else Cause.REJECTED,
                run.delivery_count,
            )
            for batch in self._window.batches
            for run in batch.runs
            if run.state is RecordState.ARCHIVING
        ]

    # What happens.

    def acquire(
        self,
        member_id: str,
        fetched: Sequence[tuple[int, int]],
        *,
        fetch_offset: int,
        max_records: int,
        now: float,
        batch_size: int | None = None,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> list[Acquired]:
        """Gives a member records that were read from the log.

        Nothing of it is persisted: after a restart they are available again, delivered once less. Call `flush`
        afterwards: it has what is to be persisted if offsets turned out to hold no records for the group.

        Args:
            member_id: who gets the records.
            fetched: the batches that were read, as (first offset, last offset), by offset.
            fetch_offset: where they were read from: the `next_fetch_offset` of then. Available records between it and
                the first batch aren't in the log any more and are archived.
            max_records: at most so many; somewhat more if `mode` is BATCH_OPTIMIZED.
            now: when; the locks begin.
            batch_size: new records are acquired in batches of about so many; as one if None.
            mode: how to keep to `max_records`.
            aborted: batches of aborted transactions, which a read_committed group doesn't get, as (first, last).

        Returns:
            What it got, by offset: empty if another member was faster, or no more may be in flight.
        """
        if not fetched:
            return []
        deadline = now + self.settings.record_lock_duration_ms
        acquisition = Acquisition(
            self._window, self.settings, member_id, fetched, max_records, batch_size or max_records, mode, deadline
        )
        acquisition.acquire(fetch_offset)
        if aborted and acquisition.acquired:
            acquisition.remove(aborted)
        for first, last, delivery_count in acquisition.dead_letters:
            self._new_dead_letters.append(DeadLetter(first, last, Cause.EXHAUSTED, delivery_count))
        window = self._window
        if window.unwritten or (window.batches and window.batches.first.first > window.start_offset):
            window.advance()
        return acquisition.acquired

    def acknowledge(self, member_id: str, batches: Sequence[AckBatch], now: float) -> Change:
        """Takes a member's acknowledgements: all of them, or none.

        Offsets before the start offset are taken without a change. Locks are renewed at once; there is nothing to
        persist of them.

        Raises:
            KafkaError: INVALID_REQUEST: an unknown type, or offsets that aren't in flight; INVALID_RECORD_STATE: not
                acquired, by another member, or acknowledged already in a change under way; or renewing isn't enabled.
        """
        acknowledging = Acknowledging(self._window, self.settings, member_id)
        acknowledging.acknowledge(batches)
        self._renew(member_id, acknowledging.renewed, now)
        return self._change(acknowledging.transitions, acknowledging.dead_letters)

    def release(self, member_id: str) -> Change:
        """Releases what a member has, as its share session has ended; their delivery counts stay."""
        releasing = Acknowledging(self._window, self.settings, member_id)
        for lock in sorted(self._window.locks.of(member_id), key=lambda lock: lock.first):
            for batch in self._window.batches.between(lock.first, lock.last):
                for run in batch.between(lock.first, lock.last):
                    if run.lock is lock and run.pending is None:
                        releasing.move(batch, run, release_event(run, self.settings))
        return self._change(releasing.transitions, releasing.dead_letters)

    def expire_locks(self, now: float) -> Change:
        """Releases what was acquired too long ago, at once: whether it can be persisted or not.

        What is acknowledged in a change under way is spared; if that fails, the deadline counts again.
        """
        for lock in self._window.locks.due(now):
            for batch in self._window.batches.between(lock.first, lock.last):
                for run in list(batch.between(lock.first, lock.last)):
                    if run.lock is lock and run.pending is None:
                        event = release_event(run, self.settings)
                        if event is Event.DEAD_LETTER:
                            self._new_dead_letters.append(
                                DeadLetter(run.first, run.last, Cause.EXHAUSTED, run.delivery_count)
                            )
                        self._window.make_at_once(batch, run.first, run.last, event)
        return self._change((), ())

    def dead_lettered(self, ranges: Iterable[tuple[int, int]]) -> Change:
        """The dead letters from first to last offsets are written, or have been given up: the records are archived."""
        for first, last in ranges:
            for batch in self._window.batches.between(first, last):
                for run in list(batch.between(first, last)):
                    if run.state is RecordState.ARCHIVING:
                        self._window.make_at_once(batch, max(first, run.first), min(last, run.last), Event.WRITTEN)
        return self._change((), ())

    def advance_start(self, log_start_offset: int) -> Change:
        """The log begins later than before: what is before that is done, whoever has acquired it."""
        if log_start_offset > self._window.start_offset:
            self._window.drop_before(log_start_offset)
            self._window.advance()
            self._start_unwritten = True
        return self.flush()

    def flush(self) -> Change:
        """What has changed at once and isn't persisted, and a start offset that no change has told of."""
        return self._change((), ())

    # What becomes of changes.

    def commit(self, change: Change) -> bool:
        """The change is persisted. Whether more can be acquired than before: waiting fetches should look again.

        Raises:
            ValueError: it was committed or rolled back before.
        """
        self._finish(change)
        window = self._window
        available = False
        for batch, run, target in change.transitions:
            run.pending = None
            if run.records:
                window.settle(batch, run, target, counted=True)
                available = available or target is RecordState.AVAILABLE
        self._join(change.transitions)
        start_offset = window.start_offset
        window.advance()
        return available or bool(change.at_once) or window.start_offset > start_offset

    def rollback(self, change: Change) -> bool:
        """The change couldn't be persisted: the members have what they had. Whether more can be acquired than before.

        What had changed at once stays changed, and goes with the next change; so do its dead letters.

        Raises:
            ValueError: it was committed or rolled back before.
        """
        self._finish(change)
        window = self._window
        for _, run, target in change.transitions:
            run.pending = None
            if run.records:
                if is_terminal(target):
                    window.complete -= run.records
                if run.lock is not None:
                    window.locks.schedule(run.lock)
        self._join(change.transitions)
        window.unwritten += change.at_once
        self._new_dead_letters += change.dead_letters_at_once
        self._start_unwritten = True
        return bool(change.at_once)

    def _finish(self, change: Change) -> None:
        if not change.under_way:
            raise ValueError("The change was committed or rolled back before.")
        change.under_way = False

    def _change(self, transitions: Sequence[Transition], dead_letters: Iterable[DeadLetter]) -> Change:
        window = self._window
        batches = [StateBatch(run.first, run.last, target, run.delivery_count) for _, run, target in transitions]
        at_once: list[tuple[int, int]] = []
        needs_write = self._start_unwritten or bool(batches or window.unwritten)
        self._start_unwritten = False
        if window.unwritten:
            window.advance()  # past some of that, perhaps: then the start offset tells it
            at_once = window.take_unwritten()
            for first, last in at_once:
                batches += window.states(first, last)
        batches.sort()
        new_dead_letters, self._new_dead_letters = self._new_dead_letters, []
        return Change(
            start_offset=window.start_offset,
            delivery_complete_count=window.complete,
            batches=combined(batches),
            dead_letters=(*dead_letters, *new_dead_letters),
            needs_write=needs_write,
            transitions=list(transitions),
            at_once=at_once,
            dead_letters_at_once=new_dead_letters,
        )

    def _renew(self, member_id: str, renewed: list[tuple[InFlightBatch, Run]], now: float) -> None:
        """Gives the runs of a batch a lock together. Of what the same request acknowledges, nothing is renewed."""
        deadline = now + self.settings.record_lock_duration_ms
        index = 0
        while index < len(renewed):
            batch = renewed[index][0]
            runs: dict[Run, None] = {}
            while index < len(renewed) and renewed[index][0] is batch:
                if renewed[index][1].pending is None:
                    runs[renewed[index][1]] = None
                index += 1
            if not runs:
                continue
            first, last = min(run.first for run in runs), max(run.last for run in runs)
            lock = self._window.locks.add(member_id, first, last, deadline, sum(run.records for run in runs))
            for run in runs:
                if run.lock is not None:
                    self._window.unlock(run.lock, run.records)
                run.lock = lock
            batch.join(first, last)

    def _join(self, transitions: Sequence[Transition]) -> None:
        """Makes runs of a batch one again where they are equal."""
        index = 0
        while index < len(transitions):
            batch = transitions[index].batch
            first, last = transitions[index].run.first, transitions[index].run.last
            while index < len(transitions) and transitions[index].batch is batch:
                run = transitions[index].run
                first, last = min(first, run.first), max(last, run.last)
                index += 1
            if len(batch.runs) > 1:
                batch.join(first, last)
