"""A broker with one share partition, its share coordinator's store and members, in virtual time; faults from a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from kohort.coordinator.share_partition import (
    AckBatch,
    AcknowledgeType,
    Acquired,
    AcquireMode,
    Change,
    DeadLetter,
    PersistedState,
    RecordState,
    SharePartition,
    SharePartitionSettings,
    StateBatch,
)
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.simulation.share_partitions.checker import Checker
from tests.simulation.share_partitions.log import Log

LOCK_MS = 1_000


class Clock:
    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._serial = 0

    def after(self, ms: int, event: Callable[[], object]) -> None:
        self._serial += 1
        heappush(self._events, (self.now + ms, self._serial, event))

    def step(self) -> None:
        self.now, _, event = heappop(self._events)
        event()


class Store:
    """What the share coordinator has persisted. Writes are in the order in which they come, answers aren't."""

    def __init__(self, rng: Random, clock: Clock) -> None:
        self.rng = rng
        self.clock = clock
        self.start = 0
        self.states: dict[int, tuple[RecordState, int]] = {}
        self.doubtful: set[int] = set()
        self.fails = 0.0
        self.unheard = 0.0

    def write(self, change: Change, answer: Callable[[bool], object]) -> None:
        written = self.rng.random() >= self.fails
        heard = written and self.rng.random() >= self.unheard
        if written:
            self.start = change.start_offset
            for first, last, state, count in change.batches:
                offsets = range(first, last + 1)
                self.states |= dict.fromkeys(offsets, (RecordState(state), count))
                self.doubtful = self.doubtful - set(offsets) if heard else self.doubtful | set(offsets)
            self.states = {offset: state for offset, state in self.states.items() if offset >= self.start}
        self.clock.after(self.rng.choice([0, 1, 5, 60]), lambda: answer(heard))

    def load(self) -> PersistedState:
        batches = tuple(StateBatch(o, o, state, count) for o, (state, count) in sorted(self.states.items()))
        return PersistedState(0, self.start, 0, batches)


class Broker:
    """Does with a share partition what the server does.

    Args:
        clock: by default one of its own.
        log: by default one that has transactions or not.
        settings: by default drawn, too.
    """

    def __init__(
        self,
        rng: Random,
        clock: Clock | None = None,
        log: Log | None = None,
        settings: SharePartitionSettings | None = None,
    ) -> None:
        self.rng = rng
        self.clock = clock or Clock()
        self.store = Store(rng, self.clock)
        self.log = log or Log(rng, rng.random() < 0.5)
        self.settings = settings or SharePartitionSettings(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=rng.choice([1, 2, 3, 5]),
            max_record_locks=rng.choice([20, 50, 200]),
            dead_letters=rng.random() < 0.5,
        )
        self.checker = Checker(
            self.log, self.settings.delivery_count_limit, 8, lambda: f"seed {self.seed}, at {self.clock.now}"
        )
        self.seed = 0
        self.counts: Counter[str] = Counter()
        self.life = 0
        self.under_way = 0
        self.partition = SharePartition(self.settings, self.store.load())

    # What members ask.

    def fetch(self, member: str, most: int, mode: AcquireMode) -> list[Acquired]:
        partition = self.partition
        offset = partition.next_fetch_offset
        if offset is None:
            return []
        if offset < self.log.start:
            self.persist(partition.advance_start(self.log.start))
            self.stands()
            return []
        batches = self.log.read(offset, self.rng.randint(1, 5))
        aborted = self.log.aborted_of(batches)
        now = self.clock.now
        acquired = partition.acquire(
            member,
            batches,
            fetch_offset=offset,
            max_records=most,
            now=now,
            batch_size=self.rng.choice([3, most]),
            mode=mode,
            aborted=aborted,
        )
        self.checker.acquired(member, acquired, now, now + LOCK_MS)
        given = sum(each.last_offset - each.first_offset + 1 for each in acquired)
        if mode is AcquireMode.RECORD_LIMIT:
            self.checker.demand(given <= most, f"{given} records are given, {most} were wanted")
        self.counts["acquired"] += given
        self.persist(partition.flush())
        self.watch_locks()
        self.stands()
        return acquired

    def acknowledge(self, member: str, batches: list[AckBatch], reply: Callable[[ErrorCode], object]) -> None:
        now = self.clock.now
        types = {
            offset: AcknowledgeType(batch.types[index if len(batch.types) > 1 else 0])
            for batch in batches
            for index, offset in enumerate(range(batch.first_offset, batch.last_offset + 1))
        }
        holds = self.checker.may_acknowledge(member, [o for o in types if o >= self.checker.start], now)
        try:
            change = self.partition.acknowledge(member, batches, now)
        except KafkaError as error:
            self.checker.demand(not holds, f"{member} holds what it acknowledges, and is told {error}")
            self.counts["refused"] += 1
            self.stands()
            reply(error.code)
            return
        self.checker.taken(member, types, now + LOCK_MS)

        def settled(persisted: bool) -> None:
            self.checker.settled(types, persisted)
            reply(ErrorCode.NONE if persisted else ErrorCode.UNKNOWN_SERVER_ERROR)

        self.counts["acknowledged"] += len(types)
        self.persist(change, settled)
        self.watch_locks()
        self.stands()

    def leave(self, member: str) -> None:
        """Its share session has ended."""
        offsets = self.checker.held_by(member)
        change = self.partition.release(member)
        for offset in offsets:
            self.checker.holders[offset].under_way = True
        self.persist(change, lambda persisted: self.checker.released(offsets, persisted))
        self.counts["left"] += 1
        self.stands()

    # What it does by itself.

    def persist(self, change: Change, then: Callable[[bool], object] = lambda persisted: None) -> None:
        if not change.needs_write:
            self.partition.commit(change)
            then(True)
            self.after(change)
            return
        life = self.life
        self.under_way += 1

        def answered(persisted: bool) -> None:
            if self.life != life:
                return
            self.under_way -= 1
            if persisted:
                self.partition.commit(change)
            else:
                self.counts["failed"] += 1
                self.partition.rollback(change)
            then(persisted)
            if persisted:
                self.after(change)
            self.watch_locks()
            self.stands()

        self.store.write(change, answered)

    def after(self, change: Change) -> None:
        for letter in change.dead_letters:
            self.send(letter)

    def send(self, letter: DeadLetter) -> None:
        """Writes a dead letter."""
        life = self.life

        def written() -> None:
            if self.life == life:
                self.checker.dead_letter(letter)
                self.counts["dead letters"] += 1
                self.persist(self.partition.dead_lettered([(letter.first_offset, letter.last_offset)]))
                self.stands()

        self.clock.after(self.rng.choice([1, 20, 400]), written)

    def watch_locks(self) -> None:
        deadline = self.partition.next_lock_deadline
        if deadline is None:
            return
        life = self.life

        def due() -> None:
            if self.life == life and (self.partition.next_lock_deadline or self.clock.now + 1) <= self.clock.now:
                change = self.partition.expire_locks(self.clock.now)
                self.checker.expired(self.partition, self.clock.now)
                self.counts["expired"] += bool(change.needs_write)
                self.persist(change)
                self.watch_locks()
                self.stands()

        self.clock.after(max(0, int(deadline) - self.clock.now), due)

    def crash(self) -> None:
        """Starts anew, with what is persisted."""
        self.life += 1
        self.under_way = 0
        self.store.doubtful.clear()
        self.counts["restarts"] += 1
        self.partition = SharePartition(self.settings, self.store.load())
        self.checker.restarted(self.store.states, self.partition.start_offset)
        for letter in self.partition.dead_letters():
            self.send(letter)
        self.stands()

    def stands(self) -> None:
        self.checker.stands(self.partition, self.settings.max_record_locks)

    def quiet(self) -> None:
        """Where nothing is under way, what is persisted is compared."""
        if self.under_way or self.store.fails or self.store.unheard:
            return
        change = self.partition.flush()
        if not change.needs_write:
            self.persist(change)
            restarted = SharePartition(self.settings, self.store.load())
            self.checker.persisted(self.store.states, self.store.doubtful, self.partition, restarted)
            self.counts["compared"] += 1
        else:
            self.persist(change)
