"""Does the simulation bite? Breaks share partitions on purpose, and says after how many seeds which invariant notices.

python -m tests.simulation.share_partitions.breakages
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kohort.coordinator.share_partition import SharePartitionSettings, acknowledging, partition, states
from kohort.coordinator.share_partition.acknowledging import Acknowledging
from kohort.coordinator.share_partition.acquiring import Acquisition
from kohort.coordinator.share_partition.changes import Change
from kohort.coordinator.share_partition.in_flight import InFlightBatch, InFlightBatches, Run
from kohort.coordinator.share_partition.locks import Lock, Locks
from kohort.coordinator.share_partition.partition import SharePartition
from kohort.coordinator.share_partition.states import Event, RecordState, is_terminal
from kohort.coordinator.share_partition.window import Window
from tests.simulation.books import InvariantError
from tests.simulation.share_partitions.scenario import simulate

Breakage = Callable[[], Any]
"""A context in which share partitions are broken."""


@contextmanager
def all_of(*contexts: Any) -> Iterator[None]:
    """Several at once."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


def changed(owner: type, name: str, how: Callable[..., Any]) -> Any:
    """A method is another one, which is given what it was."""
    original = getattr(owner, name)
    return patch.object(owner, name, lambda self, *args, **kwargs: how(original, self, *args, **kwargs))


def nothing(owner: type, name: str) -> Any:
    return patch.object(owner, name, lambda *args, **kwargs: None)


def with_settings(**settings: Any) -> Any:
    """Acquiring goes by other settings."""

    def init(original: Any, self: Acquisition, window: Window, own: SharePartitionSettings, *args: Any) -> None:
        original(self, window, replace(own, **settings), *args)

    return changed(Acquisition, "__init__", init)


def lock_of_others_taken() -> Any:
    """Who acknowledges needn't be the holder."""

    def check(original: Any, self: Acknowledging, run: Run) -> None:
        if run.lock is not None:
            self = Acknowledging(self._window, self._settings, run.lock.member_id)
        original(self, run)

    return changed(Acknowledging, "_check", check)


def pending_taken() -> Any:
    """What is under way can be acknowledged again."""

    def check(original: Any, self: Acknowledging, run: Run) -> None:
        pending, run.pending = run.pending, None
        try:
            original(self, run)
        finally:
            run.pending = pending

    return changed(Acknowledging, "_check", check)


def limit_forgotten_on_release() -> Any:
    """Released records are available, however often they were delivered."""
    return all_of(
        patch.object(acknowledging, "release_event", lambda run, settings: Event.RELEASE),
        patch.object(partition, "release_event", lambda run, settings: Event.RELEASE),
    )


def limit_forgotten() -> Any:
    """And they are acquired."""
    return all_of(limit_forgotten_on_release(), with_settings(delivery_count_limit=1_000))


def count_stays() -> Any:
    """Acquiring again doesn't count."""

    def take(original: Any, self: Acquisition, batch: InFlightBatch, first: int, last: int, **joins: bool) -> None:
        for run in batch.cut_out(first, last):
            run.delivery_count -= 1
        original(self, batch, first, last, **joins)

    return changed(Acquisition, "_take", take)


def renewal_ignored() -> Any:
    """Locks expire as if they hadn't been renewed."""
    return nothing(SharePartition, "_renew")


def renewed_lock_expires_early() -> Any:
    """When the old lock expires, so does what was renewed."""

    def expire(original: Any, self: SharePartition, now: float) -> Change:
        for batch in self._window.batches:
            for run in batch.runs:
                if run.lock is not None and run.lock.deadline <= now + 600:
                    run.lock.deadline = now
                    run.lock.scheduled = False
                    self._window.locks.schedule(run.lock)
        change: Change = original(self, now)
        return change

    return changed(SharePartition, "expire_locks", expire)


def committed_though_it_failed() -> Any:
    """A change that couldn't be persisted counts."""
    return patch.object(SharePartition, "rollback", SharePartition.commit)


def rolled_back_though_persisted() -> Any:
    """What was persisted is forgotten."""
    return patch.object(SharePartition, "commit", SharePartition.rollback)


def start_passes_pending() -> Any:
    """The start offset doesn't wait for what is under way."""

    def advance(self: Window) -> None:
        start = self.start_offset
        for batch in self.batches:
            for run in batch.runs:
                if not is_terminal(run.state if run.pending is None else run.pending):
                    self.drop_before(run.first)
                    return
            start = batch.last + 1
        self.drop_before(start)

    return all_of(
        patch.object(Window, "advance", advance),
        changed(
            SharePartition,
            "_change",
            lambda original, self, *args: (self._window.advance(), original(self, *args))[1],
        ),
    )


def start_passes_available() -> Any:
    """The start offset passes what was released."""

    def advance(original: Any, self: Window) -> None:
        original(self)
        if self.batches and self.batches.first.runs[0].state is RecordState.AVAILABLE:
            self.drop_before(self.batches.first.runs[0].last + 1)

    return changed(Window, "advance", advance)


def start_not_persisted() -> Any:
    """Where the start offset has passed all that changed, nothing is written."""

    def change(original: Any, self: SharePartition, *args: Any) -> Change:
        result: Change = original(self, *args)
        result.needs_write = bool(result.batches)
        return result

    return changed(SharePartition, "_change", change)


def start_stays() -> Any:
    """The start offset doesn't move when records are acknowledged."""
    return nothing(Window, "advance")


def unwritten_forgotten() -> Any:
    """What changed at once and couldn't be persisted isn't written with the next change."""

    def rollback(original: Any, self: SharePartition, change: Change) -> bool:
        change.at_once.clear()
        return bool(original(self, change))

    return changed(SharePartition, "rollback", rollback)


def dead_letters_of_expiry_forgotten() -> Any:
    """If it can't be persisted that locks expired, there are no dead letters of it."""

    def rollback(original: Any, self: SharePartition, change: Change) -> bool:
        change.dead_letters_at_once.clear()
        return bool(original(self, change))

    return changed(SharePartition, "rollback", rollback)


def dead_letters_forgotten_by_restarts() -> Any:
    """A restart doesn't go on with dead letters."""
    return patch.object(SharePartition, "dead_letters", lambda self: [])


def dead_letters_of_releases_forgotten() -> Any:
    """Who is released for the last time has no dead letter."""

    def move(original: Any, self: Acknowledging, batch: InFlightBatch, run: Run, event: Event) -> None:
        original(self, batch, run, event)
        if event is Event.DEAD_LETTER:
            self.dead_letters.pop()

    return changed(Acknowledging, "move", move)


def archived_before_the_dead_letter() -> Any:
    """A dead letter doesn't hold up the start offset, so a crash loses it."""
    table = {
        state: {
            event: RecordState.ARCHIVED if after is RecordState.ARCHIVING else after for event, after in row.items()
        }
        for state, row in states.TRANSITIONS.items()
    }
    return patch.object(states, "TRANSITIONS", table)


def lock_not_rescheduled() -> Any:
    """A lock whose deadline came while an acknowledgement was under way never expires if that fails."""

    def rollback(original: Any, self: SharePartition, change: Change) -> bool:
        with nothing(Locks, "schedule"):
            return bool(original(self, change))

    return changed(SharePartition, "rollback", rollback)


def aborted_given() -> Any:
    """Records of aborted transactions are given."""
    return nothing(Acquisition, "remove")


def stale_stays() -> Any:
    """What compaction removed waits to be fetched for ever."""
    return nothing(Window, "remove_available")


def gaps_taken_for_done() -> Any:
    """After a restart, what no persisted state tells isn't fetched."""

    def add(original: Any, self: Window, runs: list[Run], *, never_fetched: bool = False) -> None:
        if never_fetched:
            runs[0].state = RecordState.ARCHIVED
        original(self, runs)

    return changed(Window, "add", add)


def flight_limit_ignored() -> Any:
    """Any number of records may be in flight."""

    def next_fetch_offset(self: SharePartition) -> int:
        available = self._window.first_available()
        return self._window.end_offset + 1 if available is None else available

    return all_of(
        with_settings(max_record_locks=1_000_000),
        patch.object(SharePartition, "next_fetch_offset", property(next_fetch_offset)),
    )


def record_limit_not_kept() -> Any:
    """RECORD_LIMIT gives whole batches, too."""

    def init(original: Any, self: Acquisition, *args: Any) -> None:
        original(self, *args)
        self._exactly = False

    return changed(Acquisition, "__init__", init)


def joined_whatever_the_count() -> Any:
    """Neighbours are one run though they were delivered more or less often."""

    def equals(self: Run, other: Run) -> bool:
        return self.state is other.state and self.lock is other.lock and self.pending is other.pending is None

    return patch.object(Run, "equals", equals)


def joined_whoever_holds() -> Any:
    """Neighbours are one run though their locks differ."""

    def equals(self: Run, other: Run) -> bool:
        same = self.state is other.state and self.delivery_count == other.delivery_count
        return same and self.pending is other.pending is None

    return patch.object(Run, "equals", equals)


def completion_not_taken_back() -> Any:
    """The delivery-complete count keeps what couldn't be persisted."""

    def rollback(original: Any, self: SharePartition, change: Change) -> bool:
        complete = self._window.complete
        result = bool(original(self, change))
        self._window.complete = complete
        return result

    return changed(SharePartition, "rollback", rollback)


def locks_left_behind() -> Any:
    """When the log's beginning moves past records, their locks stay."""

    def drop(original: Any, self: Window, start_offset: int) -> None:
        with nothing(Window, "unlock"):
            original(self, start_offset)

    return changed(Window, "drop_before", drop)


def acquired_persisted_as_delivered() -> Any:
    """What is acquired is persisted with the count of a delivery that has no outcome yet."""

    def states(original: Any, self: Window, first: int, last: int) -> Any:
        return [
            each._replace(delivery_count=each.delivery_count + (each.state is RecordState.AVAILABLE))
            for each in original(self, first, last)
        ]

    return changed(Window, "states", states)


def cut_batch_not_listed() -> Any:
    """Available records of a batch that the start offset has cut aren't found."""

    def drop(original: Any, self: InFlightBatches, offset: int) -> Any:
        lost = original(self, offset)
        if lost and len(self):
            self.first.listed = False
        return lost

    return changed(InFlightBatches, "drop_before", drop)


def released_records_not_listed() -> Any:
    """Records that are released aren't found."""

    def settle(original: Any, self: Window, *args: Any, **kwargs: Any) -> None:
        with nothing(Window, "list_available"):
            original(self, *args, **kwargs)

    return changed(Window, "settle", settle)


def acquired_while_held() -> Any:
    """A fetch takes what another member has."""

    def again(original: Any, self: Acquisition, batch: InFlightBatch, first: int, last: int) -> bool:
        for run in batch.between(first, last):
            if run.state is RecordState.ACQUIRED and run.pending is None and run.lock is not None:
                self._window.unlock(run.lock, run.records)
                run.state, run.lock = RecordState.AVAILABLE, None
        return bool(original(self, batch, first, last))

    return changed(Acquisition, "_again", again)


def leaving_releases_nothing() -> Any:
    """Whoever leaves keeps its records until their locks expire."""
    return patch.object(SharePartition, "release", lambda self, member_id: self._change((), ()))


def refused_by_half() -> Any:
    """What was taken of a request that is refused stays pending."""
    return nothing(Acknowledging, "_take_back")


def renewed_lock_of_another_batch() -> Any:
    """A lock loses more records than leave it."""

    def take_out(original: Any, self: Locks, lock: Lock, records: int) -> None:
        original(self, lock, min(lock.records, records + (records > 3)))

    return changed(Locks, "take_out", take_out)


BREAKAGES: Final[tuple[Breakage, ...]] = (
    lock_of_others_taken, pending_taken, limit_forgotten, count_stays, renewal_ignored,
    renewed_lock_expires_early, committed_though_it_failed, rolled_back_though_persisted, start_passes_pending,
    start_passes_available, start_not_persisted, start_stays, unwritten_forgotten, dead_letters_of_expiry_forgotten,
    dead_letters_forgotten_by_restarts, dead_letters_of_releases_forgotten, archived_before_the_dead_letter,
    lock_not_rescheduled, aborted_given, stale_stays, gaps_taken_for_done, flight_limit_ignored, record_limit_not_kept,
    joined_whatever_the_count, joined_whoever_holds, completion_not_taken_back, locks_left_behind,
    acquired_persisted_as_delivered, cut_batch_not_listed, released_records_not_listed, acquired_while_held,
    leaving_releases_nothing, refused_by_half, renewed_lock_of_another_batch,
)  # fmt: skip


HARMLESS: Final[tuple[Breakage, ...]] = (limit_forgotten_on_release,)
"""Not noticed, and nothing is wrong: who acquires looks again, as the limit may have been lowered."""


def noticed(breakage: Breakage, seeds: int, first: int = 1) -> tuple[int, str] | None:
    """After how many seeds a breakage is noticed, and what is said; None if it isn't."""
    with breakage():
        for number in range(seeds):
            try:
                simulate(first + number)
            except (InvariantError, AssertionError, KeyError, ValueError, IndexError) as error:
                said = re.sub(r"^seed \d+, at \d+: ", "", str(error).split("\n", 1)[0])
                return number + 1, said if isinstance(error, InvariantError) else repr(error)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.share_partitions.breakages", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="seeds to try each with, at most")
    parser.add_argument("--only", default="", help="those whose names contain this")
    options = parser.parse_args()
    missed = 0
    for breakage in (*BREAKAGES, *HARMLESS):
        if options.only not in breakage.__name__:
            continue
        began = time.process_time()
        found = noticed(breakage, options.seeds)
        after, what = found or ("-", "not noticed; harmless" if breakage in HARMLESS else "NOT NOTICED")
        missed += found is None and breakage in BREAKAGES
        took = time.process_time() - began
        sys.stdout.write(f"{breakage.__name__:<36} {after:>4} seeds {took:5.1f} s  {what[:130]}\n")
        sys.stdout.flush()
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
