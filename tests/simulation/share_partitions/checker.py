"""What must hold of a share partition, judged by what members were given and told, record by record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kohort.coordinator.share_partition import (
    AcknowledgeType,
    Acquired,
    Cause,
    DeadLetter,
    RecordState,
    SharePartition,
)
from tests.simulation.books import InvariantError
from tests.simulation.share_partitions.log import Log

NEW = (RecordState.AVAILABLE, 0)
DONE = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


@dataclass(slots=True)
class Holder:
    member: str
    deadline: float
    under_way: bool = False


@dataclass
class Checker:
    """Attributes:
    delivered: how often each record was really given to members.
    counts: the delivery count that each was given with last, as the broker that runs can know it.
    """

    log: Log
    limit: int
    largest_batch: int
    where: Callable[[], str]
    delivered: Counter[int] = field(default_factory=Counter)
    counts: dict[int, int] = field(default_factory=dict)
    holders: dict[int, Holder] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    asked: defaultdict[int, set[AcknowledgeType]] = field(default_factory=lambda: defaultdict(set))
    letters: defaultdict[int, set[Cause]] = field(default_factory=lambda: defaultdict(set))
    members: set[str] = field(default_factory=set)
    start: int = 0

    def demand(self, condition: bool, what: str) -> None:
        if not condition:
            raise InvariantError(f"{self.where()}: {what}")

    def acquired(self, member: str, acquired: Iterable[Acquired], now: float, deadline: float) -> None:
        self.members.add(member)
        for first, last, count in acquired:
            for o in range(first, last + 1):
                holder = self.holders.get(o)
                self.demand(holder is None, f"offset {o} has two holders: {member} and {holder}")
                self.demand(o not in self.accepted, f"offset {o} is given again after it was accepted")
                aborted = o in self.log.aborted and o in self.log.records
                self.demand(not aborted, f"offset {o} of an aborted transaction is given")
                self.demand(count <= self.limit, f"offset {o} is delivered {count} times, more than {self.limit}")
                expected = self.counts.get(o, 0) + 1
                self.demand(count == expected, f"offset {o} has delivery count {count}, not {expected}")
                self.demand(o >= self.start, f"offset {o} is before the start offset {self.start}")
                self.counts[o] = count
                self.delivered[o] += 1
                self.holders[o] = Holder(member, deadline)

    def may_acknowledge(self, member: str, offsets: Iterable[int], now: float) -> bool:
        """Whether it certainly holds all of these."""
        for o in offsets:
            holder = self.holders.get(o)
            if holder is None or holder.member != member or holder.under_way or holder.deadline <= now:
                return False
        return True

    def taken(self, member: str, types: dict[int, AcknowledgeType], deadline: float) -> None:
        """An acknowledgement isn't refused; it is under way."""
        for o, type_ in types.items():
            if o < self.start:
                continue
            holder = self.holders.get(o)
            self.demand(
                holder is not None and holder.member == member and not holder.under_way,
                f"{member} acknowledges offset {o}, whose holder is {holder}",
            )
            assert holder is not None
            if type_ is AcknowledgeType.RENEW:
                holder.deadline = deadline
            else:
                holder.under_way = True
                self.asked[o].add(type_)

    def settled(self, offsets: dict[int, AcknowledgeType], persisted: bool) -> None:
        """What was under way is committed, or rolled back."""
        for o, type_ in offsets.items():
            holder = self.holders.get(o)
            if type_ is AcknowledgeType.RENEW or holder is None:
                continue
            holder.under_way = False
            if persisted:
                del self.holders[o]
                if type_ is AcknowledgeType.ACCEPT:
                    self.accepted.add(o)
                if type_ is not AcknowledgeType.RELEASE:
                    self.done.add(o)

    def released(self, offsets: Iterable[int], persisted: bool) -> None:
        self.settled(dict.fromkeys(offsets, AcknowledgeType.RELEASE), persisted)

    def held_by(self, member: str) -> list[int]:
        return [o for o, holder in self.holders.items() if holder.member == member and not holder.under_way]

    def expired(self, partition: SharePartition, now: float) -> None:
        """The broker has looked for locks whose deadline has come."""
        gone = [o for o, holder in self.holders.items() if holder.deadline <= now and not holder.under_way]
        for o in gone:
            del self.holders[o]
        deadlines = [holder.deadline for holder in self.holders.values() if not holder.under_way]
        wake = partition.next_lock_deadline
        self.demand(
            not deadlines or (wake is not None and wake <= min(deadlines)), f"locks at {deadlines[:1]} will not expire"
        )

    def dead_letter(self, letter: DeadLetter) -> None:
        for o in range(letter.first_offset, letter.last_offset + 1):
            rejected = AcknowledgeType.REJECT in self.asked[o]
            if letter.cause is Cause.REJECTED:
                self.demand(rejected, f"a dead letter of offset {o} says that it was rejected")
            else:
                self.demand(self.delivered[o] >= self.limit, f"offset {o} isn't exhausted, but has a dead letter")
            self.demand(o not in self.accepted, f"offset {o} was accepted and has a dead letter")
            self.letters[o].add(letter.cause)

    def stands(self, partition: SharePartition, max_records: int) -> None:
        """After each step."""
        self.demand(partition.start_offset >= self.start, "the start offset went back")
        for o in range(self.start, partition.start_offset):
            self.demand(self.is_done(o), f"the start offset passed {o}, which isn't done")
        self.start = partition.start_offset
        self.holders = {o: holder for o, holder in self.holders.items() if o >= self.start}
        if partition.in_flight_records >= max_records + self.largest_batch:
            in_flight = sum(partition.start_offset <= o <= partition.end_offset for o in self.log.records)
            self.demand(
                in_flight < max_records + self.largest_batch, f"{in_flight} records are in flight, {max_records} may be"
            )
        complete = 0
        for first, last, state, _, member, deadline in partition.describe():
            complete += (last - first + 1) if state in DONE else 0
            for o in range(first, last + 1):
                holder = self.holders.get(o)
                known = (holder.member, holder.deadline) if holder else (None, None)
                self.demand(known == (member, deadline), f"offset {o} is held by {member}, but {known} is known")
        self.demand(
            complete <= partition.delivery_complete_count <= partition.in_flight_records,
            f"{partition.delivery_complete_count} of {partition.in_flight_records} are complete, not {complete}",
        )

    def is_done(self, o: int) -> bool:
        if o not in self.log.records or o in self.log.aborted or o in self.done:
            return True
        return o in self.letters or self.delivered[o] >= self.limit

    def persisted(
        self,
        states: dict[int, tuple[RecordState, int]],
        doubtful: set[int],
        partition: SharePartition,
        restarted: SharePartition,
    ) -> None:
        """Nothing is under way, all is written: a restart would find the state as it is but for locks.

        But for what was written though the broker had to think that it wasn't, too.
        """
        again = restarted.start_offset
        for o in range(again, partition.start_offset):
            self.demand(
                o not in self.log.records or o in doubtful or states.get(o, NEW)[0] in DONE,
                f"offset {o} is done, and a restart begins at {again}",
            )
        snapshot = partition.snapshot()
        live = {o: (state, count) for first, last, state, count in snapshot.batches for o in range(first, last + 1)}
        for o in range(self.start, partition.end_offset + 1):
            self.demand(
                live.get(o, NEW) == states.get(o, NEW) or o in doubtful,
                f"offset {o} is {live.get(o, NEW)}, but {states.get(o, NEW)} is persisted",
            )
        self.demand(
            partition.delivery_complete_count == snapshot.delivery_complete_count,
            f"{partition.delivery_complete_count} are complete, not {snapshot.delivery_complete_count}",
        )

    def restarted(self, states: dict[int, tuple[RecordState, int]], start: int) -> None:
        """What a broker knows that starts anew."""
        self.holders.clear()
        self.counts = {o: count for o, (_, count) in states.items()}
        self.done |= {o for o, (state, _) in states.items() if state in DONE}
        self.start = start

    def ended(self, partition: SharePartition, dead_letters: bool) -> None:
        """All is read, nothing goes wrong any more: what became of every record?"""
        self.demand(
            partition.start_offset == self.log.end,
            f"the start offset stays at {partition.start_offset}, the log ends at {self.log.end}",
        )
        held = [member for member in self.members if partition.holds(member)]
        self.demand(partition.next_lock_deadline is None and not held, f"locks of {held} are left")
        self.demand(partition.delivery_complete_count == 0, f"{partition.delivery_complete_count} count for nothing")
        for o in self.log.records - self.log.aborted:
            asked = self.asked[o]
            exhausted = self.delivered[o] >= self.limit
            gone = bool(asked & {AcknowledgeType.REJECT, AcknowledgeType.GAP}) or exhausted
            self.demand(gone or AcknowledgeType.ACCEPT in asked, f"offset {o} is lost")
            if dead_letters and not asked & {AcknowledgeType.ACCEPT, AcknowledgeType.GAP}:
                self.demand(o in self.letters, f"offset {o} has no dead letter")
