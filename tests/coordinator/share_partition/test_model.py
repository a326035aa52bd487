"""A share partition beside a naive model with an entry for each record, through all that can happen to it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kohort.coordinator.share_partition import (
    AckBatch,
    AcknowledgeType,
    AcquireMode,
    Cause,
    Change,
    PersistedState,
    RecordState,
    SharePartition,
    SharePartitionSettings,
    StateBatch,
)
from kohort.protocol.errors import KafkaError

LOCK_MS = 100
MAX_LOCKS = 40
MEMBERS = ("a", "b", "c")
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
TERMINAL = (ACKNOWLEDGED, ARCHIVED)
NEW = (AVAILABLE, 0)


@dataclass(slots=True)
class Record:
    state: RecordState = AVAILABLE
    count: int = 0
    member: str | None = None
    deadline: float = 0
    target: RecordState | None = None


@dataclass(slots=True)
class Pending:
    """A change under way: whether it was written, and what it makes of which records."""

    change: Change
    written: bool
    targets: dict[int, RecordState]


class SharePartitionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.log: list[tuple[int, int]] = []
        self.log_end = 0
        self.dead_letters = True
        self.limit = 3
        self.records: dict[int, Record] = {}
        self.start = 0
        self.persisted: dict[int, tuple[RecordState, int]] = {}
        self.persisted_start = 0
        self.accepted: set[int] = set()
        self.letters: set[int] = set()
        self.storage_fails = False
        self.under_way: list[Pending] = []
        self.partition = self.load()

    def load(self) -> SharePartition:
        batches = tuple(
            StateBatch(offset, offset, state, count) for offset, (state, count) in sorted(self.persisted.items())
        )
        return SharePartition(self.group_settings(), PersistedState(1, self.persisted_start, 0, batches))

    def group_settings(self) -> SharePartitionSettings:
        return SharePartitionSettings(LOCK_MS, self.limit, MAX_LOCKS, dead_letters=self.dead_letters)

    @rule(limit=st.integers(1, 6), dead_letters=st.booleans())
    def configure(self, limit: int, dead_letters: bool) -> None:
        self.limit, self.dead_letters = limit, dead_letters
        self.partition.settings = self.group_settings()

    def record(self, offset: int) -> Record:
        return self.records.setdefault(offset, Record())

    # The log.

    @initialize(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=6))
    def produce_first(self, sizes: list[int]) -> None:
        self.append(sizes)

    @rule(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4))
    def produce(self, sizes: list[int]) -> None:
        self.append(sizes)

    def append(self, sizes: list[int]) -> None:
        for size in sizes:
            self.log.append((self.log_end, self.log_end + size - 1))
            self.log_end += size

    @precondition(lambda self: len(self.log) > 1)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self.log.remove(data.draw(st.sampled_from(self.log[:-1])))

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def log_start_moves(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log[0][0], min(self.log[0][0] + 12, self.log_end)))
        self.log = [batch for batch in self.log if batch[1] >= offset]
        change = self.partition.advance_start(offset)
        self.start = max(self.start, offset)
        self.follow(change, {})

    # What members do.

    @precondition(lambda self: self.partition.next_fetch_offset is not None)
    @rule(
        member=st.sampled_from(MEMBERS),
        batches=st.integers(1, 5),
        most=st.integers(1, 15),
        size=st.integers(1, 10),
        mode=st.sampled_from(AcquireMode),
        aborts=st.sets(st.integers(0, 4), max_size=2),
    )
    def fetch(self, member: str, batches: int, most: int, size: int, mode: AcquireMode, aborts: set[int]) -> None:
        offset = self.partition.next_fetch_offset
        assert offset is not None
        fetched = [batch for batch in self.log if batch[1] >= offset][:batches]
        if not fetched:
            return
        aborted = [fetched[index] for index in sorted(aborts) if index < len(fetched)]
        end = self.partition.end_offset
        acquired = self.partition.acquire(
            member,
            fetched,
            fetch_offset=offset,
            max_records=most,
            now=self.now,
            batch_size=size,
            mode=mode,
            aborted=aborted,
        )
        for gone in range(offset, min(fetched[0][0], end + 1)):
            if self.record(gone).state is AVAILABLE:
                self.records[gone] = Record(ARCHIVED, self.record(gone).count)
        found = {o: run for run in self.partition.describe() for o in range(run.first_offset, run.last_offset + 1)}
        for first, last in aborted:
            for o in range(first, last + 1):
                taken_back = o < self.partition.start_offset or found.get(o, (0, 0, AVAILABLE))[2] is ARCHIVED
                record = self.record(o)
                if o >= self.start and record.state is AVAILABLE and record.count < self.limit and taken_back:
                    self.records[o] = Record(ARCHIVED, record.count + 1)
        for o, record in self.records.items():
            if o >= offset and record.state is AVAILABLE and record.count >= self.limit:
                state = ARCHIVED if o < self.partition.start_offset else found[o][2]
                assert state in (AVAILABLE, ARCHIVING if self.dead_letters else ARCHIVED)
                record.state = state
        previous = -1
        for first, last, count in acquired:
            assert previous < first <= last <= fetched[-1][1]
            previous = last
            for o in range(first, last + 1):
                record = self.record(o)
                assert o >= self.start, "before the start offset"
                assert (record.state, record.target) == (AVAILABLE, None), "not available"
                assert o not in self.accepted, "accepted before"
                assert count == record.count + 1 <= self.limit
                assert not any(low <= o <= high for low, high in aborted), "aborted"
                self.records[o] = Record(ACQUIRED, count, member, self.now + LOCK_MS)
        total = sum(last - first + 1 for first, last, _ in acquired)
        if mode is AcquireMode.RECORD_LIMIT:
            assert total <= most
        if not acquired and not aborted:
            assert all(
                self.record(o).state is not AVAILABLE
                for low, high in fetched
                for o in range(max(low, offset), min(high, end) + 1)
            ), "available records were not acquired"
            assert fetched[-1][1] <= end or self.partition.in_flight_records >= MAX_LOCKS
        self.follow(self.partition.flush(), {})

    @precondition(lambda self: any(record.state is ACQUIRED for record in self.records.values()))
    @rule(data=st.data(), types=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=8), whole=st.booleans())
    def acknowledge(self, data: st.DataObject, types: list[AcknowledgeType], whole: bool) -> None:
        acquired = sorted(o for o, record in self.records.items() if record.state is ACQUIRED)
        first = data.draw(st.sampled_from(acquired))
        member = data.draw(st.sampled_from([*[self.records[first].member or ""] * 5, *MEMBERS]))
        last = first + len(types) - 1
        types = types[:1] if whole else types
        window = [o for o in range(first, last + 1) if o >= self.start]
        known = {o for run in self.partition.describe() for o in range(run.first_offset, run.last_offset + 1)}
        of = [types[0]] * (last - first + 1) if whole else types
        ends = {first + i for i in range(len(of)) if i + 1 == len(of) or of[i] is not of[i + 1]}
        allowed = ends & set(window) <= known and all(
            self.records[o].state is ACQUIRED and self.records[o].member == member and self.records[o].target is None
            for o in known.intersection(window)
        )
        try:
            change = self.partition.acknowledge(member, [AckBatch(first, last, types)], self.now)
        except KafkaError:
            assert not allowed
            return
        assert allowed
        targets: dict[int, RecordState] = {}
        for o in known.intersection(window):
            type_ = of[o - first]
            if type_ is AcknowledgeType.RENEW:
                self.records[o].deadline = self.now + LOCK_MS
            else:
                targets[o] = self.outcome(self.records[o], type_)
        self.follow(change, targets)

    @precondition(lambda self: any(record.state is ACQUIRED for record in self.records.values()))
    @rule(data=st.data(), type_=st.sampled_from(AcknowledgeType), answered=st.booleans())
    def acknowledge_all_of_a_batch(self, data: st.DataObject, type_: AcknowledgeType, answered: bool) -> None:
        held = [each for each in self.partition.describe() if each.member_id is not None]
        if not held:
            return
        first, last, _, _, member, _ = data.draw(st.sampled_from(held))
        offsets = range(first, last + 1)
        if any(self.records[o].target is not None for o in offsets):
            return
        change = self.partition.acknowledge(member or "", [AckBatch(first, last, [type_])], self.now)
        if type_ is AcknowledgeType.RENEW:
            for o in offsets:
                self.records[o].deadline = self.now + LOCK_MS
            self.follow(change, {})
        else:
            self.follow(change, {o: self.outcome(self.records[o], type_) for o in offsets})
        if answered:
            self.finish(self.under_way.pop())

    def outcome(self, record: Record, type_: AcknowledgeType) -> RecordState:
        if type_ is AcknowledgeType.ACCEPT:
            return ACKNOWLEDGED
        if type_ is AcknowledgeType.GAP:
            return ARCHIVED
        if type_ is AcknowledgeType.RELEASE and record.count < self.limit:
            return AVAILABLE
        return ARCHIVING if self.dead_letters else ARCHIVED

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        change = self.partition.release(member)
        targets = {
            o: self.outcome(record, AcknowledgeType.RELEASE)
            for o, record in self.records.items()
            if record.member == member and record.target is None and o >= self.start
        }
        self.follow(change, targets)

    @rule(ms=st.sampled_from([1, 30, LOCK_MS]))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        deadline = self.partition.next_lock_deadline
        held = [
            r.deadline for o, r in self.records.items() if r.state is ACQUIRED and o >= self.start and r.target is None
        ]
        assert not held or (deadline is not None and deadline <= min(held)), "a lock would never expire"
        change = self.partition.expire_locks(self.now)
        for o, record in self.records.items():
            if record.state is ACQUIRED and record.target is None and record.deadline <= self.now and o >= self.start:
                self.records[o] = Record(self.outcome(record, AcknowledgeType.RELEASE), record.count)
        self.follow(change, {})

    @precondition(lambda self: ARCHIVING in (record.state for record in self.records.values()))
    @rule(data=st.data())
    def write_dead_letter(self, data: st.DataObject) -> None:
        first = data.draw(st.sampled_from(sorted(o for o, r in self.records.items() if r.state is ARCHIVING)))
        change = self.partition.dead_lettered([(first, first + 2)])
        for o in range(first, first + 3):
            if o in self.records and self.records[o].state is ARCHIVING and o >= self.start:
                self.records[o].state = ARCHIVED
        self.follow(change, {})

    # Persisting.

    def follow(self, change: Change, targets: dict[int, RecordState]) -> None:
        """A change is written, or can't be; the answer comes later."""
        told = {o: state for first, last, state, _ in change.batches for o in range(first, last + 1)}
        assert targets.items() <= told.items(), "a transition isn't persisted"
        assert change.needs_write or not change.batches
        for o, target in targets.items():
            self.records[o].target = target
        if change.needs_write and not self.storage_fails:
            assert change.start_offset >= self.persisted_start
            self.persisted_start = change.start_offset
            for first, last, state, count in change.batches:
                self.persisted |= dict.fromkeys(range(first, last + 1), (state, count))
            self.persisted = {o: state for o, state in self.persisted.items() if o >= self.persisted_start}
        self.under_way.append(Pending(change, not (change.needs_write and self.storage_fails), targets))

    @rule(fails=st.booleans())
    def storage(self, fails: bool) -> None:
        self.storage_fails = fails

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        self.finish(self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1))))

    @rule()
    def answer_all(self) -> None:
        while self.under_way:
            self.finish(self.under_way.pop())

    def finish(self, pending: Pending) -> None:
        if not pending.written:
            self.partition.rollback(pending.change)
            for o in pending.targets:
                self.records[o].target = None
            return
        self.partition.commit(pending.change)
        for o, target in pending.targets.items():
            self.records[o] = Record(target, self.records[o].count)
            if target is ACKNOWLEDGED:
                self.accepted.add(o)
        for first, last, cause, count in pending.change.dead_letters:
            assert not self.letters & set(range(first, last + 1)), "a second dead letter"
            self.letters |= set(range(first, last + 1))
            assert cause in Cause
            assert count > 0

    @rule()
    def restart(self) -> None:
        self.under_way.clear()
        self.partition = self.load()
        self.start = self.partition.start_offset
        self.records = {o: Record(state, count) for o, (state, count) in self.persisted.items() if o >= self.start}
        self.letters = {o for first, last, *_ in self.partition.dead_letters() for o in range(first, last + 1)}

    @rule()
    def what_is_persisted_is_the_state_without_locks(self) -> None:
        self.answer_all()
        self.storage_fails = False
        self.follow(self.partition.flush(), {})
        self.answer_all()
        snapshot = self.partition.snapshot()
        live = {o: (each[2], each[3]) for each in snapshot.batches for o in range(each[0], each[1] + 1)}
        for o in range(snapshot.start_offset, self.partition.end_offset + 1):
            assert live.get(o, NEW) == self.persisted.get(o, NEW), o
        loaded = self.load()  # it may begin earlier, where there are no records
        assert loaded.start_offset <= snapshot.start_offset
        in_log = {o for first, last in self.log for o in range(first, last + 1)}
        done = {o for run in loaded.describe() if run.state in TERMINAL for o in range(run.first_offset, run[1] + 1)}
        earlier = set(range(loaded.start_offset, snapshot.start_offset))
        assert not in_log & earlier - done, "done, but not persisted"
        loaded.advance_start(snapshot.start_offset)
        assert loaded.snapshot() == snapshot
        for o, record in self.records.items():
            if record.state is ARCHIVING and o >= self.start:
                assert o in self.letters, "a dead letter is lost"

    @invariant()
    def each_record_is_as_the_model_has_it(self) -> None:
        partition = self.partition
        assert partition.start_offset >= self.start
        in_log = {o for first, last in self.log for o in range(first, last + 1)}
        for o in range(self.start, partition.start_offset):
            record = self.record(o)
            done = record.state in TERMINAL and record.target is None
            assert done or (record == Record() and o not in in_log), "the start offset passed what isn't done"
        self.start = partition.start_offset
        known: set[int] = set()
        for first, last, state, count, member, deadline in partition.describe():
            for o in range(first, last + 1):
                record = self.record(o)
                assert o not in known
                known.add(o)
                assert (state, count, member) == (record.state, record.count, record.member), o
                assert deadline == (record.deadline if member else None)
        for o, record in self.records.items():
            if o >= self.start and o not in known:
                assert record.count == 0
                assert record.member is None
        terminal = sum(self.records[o].state in TERMINAL or self.records[o].target in TERMINAL for o in known)
        assert partition.delivery_complete_count == terminal
        in_flight = in_log.intersection(range(partition.start_offset, partition.end_offset + 1))
        assert min(partition.in_flight_records, len(in_flight)) <= MAX_LOCKS + 6  # a gap before a batch comes with it
        available = [o for o in sorted(known) if self.records[o].state is AVAILABLE]
        limited = partition.in_flight_records >= MAX_LOCKS
        assert partition.next_fetch_offset == (
            available[0] if available else None if limited else partition.end_offset + 1
        )
        for member in MEMBERS:
            assert partition.holds(member) == any(self.records[o].member == member for o in known)
        if known:
            head = self.records[min(known)]
            assert head.target is not None or head.state not in TERMINAL, "the start offset should have moved"
        runs = [run for batch in partition._window.batches for run in batch.runs]
        assert len(runs) <= len(known)
        for batch in partition._window.batches:
            assert not any(one.equals(other) for one, other in zip(batch.runs, batch.runs[1:], strict=False)), (
                "not joined"
            )


TestSharePartition = SharePartitionModel.TestCase
TestSharePartition.settings = settings(max_examples=60, stateful_step_count=60, deadline=None, derandomize=True)


@pytest.mark.long
def test_much_longer() -> None:
    run_state_machine_as_test(
        SharePartitionModel, settings=settings(max_examples=500, stateful_step_count=80, deadline=None)
    )
