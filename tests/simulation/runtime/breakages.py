"""Does the simulation bite? Breaks the runtime on purpose, and says after how many seeds which invariant notices.

python -m tests.simulation.runtime.breakages
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kohort.client.types import TopicPartition
from kohort.spark.runtime import epoch_states, task_states
from kohort.spark.runtime.chain_epochs import ChainEpochs
from kohort.spark.runtime.effects import Epoch, ForEpochs
from kohort.spark.runtime.epoch_planning import EpochPlan, PollRound
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.local_task import LocalTask
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskEffect, TaskEvent, TaskState
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.activation import Activation
from tests.simulation.runtime.application import KINDS, PROGRAM_KINDS
from tests.simulation.runtime.clock import Steps
from tests.simulation.runtime.cluster import Cluster
from tests.simulation.runtime.coordinator import Coordinator
from tests.simulation.runtime.interpreter import Interpreter
from tests.simulation.runtime.producer import Committer, Producer
from tests.simulation.runtime.scenario import simulate

T, TV, TE = TaskState, TaskEvent, TaskEffect
E, EV, EE = EpochState, EpochEvent, EpochEffect
Breakage = Callable[[], Any]
"""A context in which the runtime is broken."""


@contextmanager
def all_of(*contexts: Any) -> Iterator[None]:
    """Several at once."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


@contextmanager
def row(
    table: dict[Any, Any], state: Any, event: Any, effects: tuple[Any, ...] = (), after: Any = None
) -> Iterator[None]:
    """A row of a table is another one; without a state after it, it is gone."""
    assert (state, event) in table
    with patch.dict(table):
        del table[state, event]
        if after is not None:
            table[state, event] = effects, after
        yield


def task_row(state: T, event: TV, effects: tuple[TE, ...] = (), after: T | None = None) -> Any:
    """A row of a task's states."""
    return row(task_states.TRANSITIONS, state, event, effects, after)


def epoch_row(state: E, event: EV, effects: tuple[EE, ...] = (), after: E | None = None) -> Any:
    """A row of an epoch's states."""
    return row(epoch_states.TRANSITIONS, state, event, effects, after)


# What is tried again, and what is begun again from what is committed ------------------------------------------------


def resent_when_unanswered() -> Any:
    """A transaction that may count is sent again."""

    def abort(self: Committer) -> Steps:
        self.producer = None
        yield 1

    return all_of(
        epoch_row(E.COMMITTING, EV.UNANSWERED, (EE.SEND_LATER,), E.RETRYING), patch.object(Committer, "abort", abort)
    )


def producer_not_closed() -> Any:
    """After a failure the producer stays as it is, with its transaction."""

    def close(self: Committer, *, patient: bool) -> Steps:
        yield 1

    return patch.object(Committer, "close", close)


def failed_and_going_on() -> Any:
    """After a failed epoch its tasks go on where they are."""
    return all_of(
        task_row(T.IN_EPOCH, TV.EPOCH_FAILED, (), T.RUNNING), task_row(T.COMMITTING, TV.EPOCH_FAILED, (), T.RUNNING)
    )


def store_passed_over() -> Any:
    """A store that couldn't be written is passed over."""
    store = Interpreter._store

    def lenient(self: Interpreter, effect: ForEpochs) -> Steps:
        try:
            yield from store(self, effect)
        except Exception:
            yield 1

    return patch.object(Interpreter, "_store", lenient)


def stored_before_commit() -> Any:
    """Stores are written before the transaction is committed."""
    for_epochs = Interpreter._for_epochs

    def early(self: Interpreter, effect: ForEpochs) -> None:
        if effect.effect is EE.COMMIT:
            made, first = self._made[effect.subtopology], self.committer(effect.subtopology)._first
            for changelog, rows in made.rows.items():
                task, name = made.stores[changelog]
                store = self._instance.disk.open[task][name]
                position = first[changelog] + len(rows)
                if store.position is None or position > store.position:
                    store.write("epoch", rows, position)
        for_epochs(self, effect)

    return patch.object(Interpreter, "_for_epochs", early)


# Positions ------------------------------------------------------------------------------------------------------------


def positions_not_advanced() -> Any:
    """What was committed is read again."""

    def stored(self: ChainEpochs, took_ms: float) -> None:
        self.happened(EV.STORED)

    return patch.object(ChainEpochs, "stored", stored)


def positions_advanced_early() -> Any:
    """Positions move on when an epoch begins, and not when it is committed."""
    planned = ChainEpochs._planned

    def early(self: ChainEpochs, plan: Any) -> Any:
        for each, task in zip(plan.ranges, plan.tasks, strict=True):
            self.tasks[task].positions[TopicPartition(each.topic, each.partition)] = each.end
        return planned(self, plan)

    return patch.object(ChainEpochs, "_planned", early)


def tasks_mixed() -> Any:
    """What an epoch's tasks come to is told to the wrong ones of them."""
    stored, task_of = ChainEpochs.stored, EpochPlan.task_of

    def another(self: EpochPlan, read: Any) -> TaskId:
        return self.tasks[-1 - self.tasks.index(task_of(self, read))]

    def mixed(self: ChainEpochs, took_ms: float) -> None:
        with patch.object(EpochPlan, "task_of", another):
            stored(self, took_ms)

    return patch.object(ChainEpochs, "stored", mixed)


def stream_time_lost() -> Any:
    """A task that is taken on begins without a stream time."""
    restored = TaskManager.restored

    def forgetful(self: TaskManager, task_id: TaskId, operation: int, positions: Any, stream_time: int | None) -> Any:
        return restored(self, task_id, operation, positions, None)

    return patch.object(TaskManager, "restored", forgetful)


def failures_never_reset() -> Any:
    """Failures add up, whatever succeeds in between."""
    stored = ChainEpochs.stored

    def unforgiving(self: ChainEpochs, took_ms: float) -> None:
        before = {task.id: task.failures for task in self.tasks.values()}
        moved = ChainEpochs.happened

        def happened(self: ChainEpochs, event: EV, why: str | None = None, number: int = 0) -> None:
            for task in self.tasks.values():
                task.failures = before.get(task.id, 0)
            moved(self, event, why, number)

        with patch.object(ChainEpochs, "happened", happened):
            stored(self, took_ms)

    return patch.object(ChainEpochs, "stored", unforgiving)


# Merging at once ------------------------------------------------------------------------------------------------------


def merged_without_reading() -> Any:
    """Rows are merged at once, whatever lies in the repartition topic."""
    return patch.object(ChainEpochs, "_behind", lambda self, task, output: 0)


def merged_after_what_is_decided() -> Any:
    """Rows are merged at once after what can be read of the topic, though more is written that isn't decided yet."""
    return patch.object(
        Cluster, "written", lambda self, partitions: {at: self.logs[at].stable for at in sorted(partitions)}
    )


def topic_forgotten_when_tasks_come() -> Any:
    """A task's rows are merged at once, though its last owner may have sent some to the topic."""

    def forgetful(self: ChainEpochs, task: LocalTask) -> None:
        task.merges_from = None

    return patch.object(ChainEpochs, "restored", forgetful)


def merged_unfenced() -> Any:
    """Tasks that merge don't commit where they are: nobody waits for their transaction."""
    merged = ChainEpochs._merged

    def unfenced(self: ChainEpochs, epoch: Epoch, number: int, times: Any) -> None:
        before = epoch.offsets
        merged(self, epoch, number, times)
        epoch.offsets = before

    return patch.object(ChainEpochs, "_merged", unfenced)


def held_for_ever() -> Any:
    """A stream waits for tasks that merge, however long they have to wait themselves."""
    return patch("kohort.spark.runtime.chain_epochs._HELD_S", 10**9)


# Activation -----------------------------------------------------------------------------------------------------------


def unstable_offsets_taken() -> Any:
    """Committed offsets are taken as they are, though a transaction may still change them."""
    committed = Coordinator.committed

    def hasty(self: Coordinator, partitions: Any, member_id: str, epoch: int) -> Any:
        fetch = self.shard.offsets.fetch

        def unstable(group: Any, *, require_stable: bool) -> Any:
            return fetch(group, require_stable=False)

        with patch.object(self.shard.offsets, "fetch", unstable):
            return committed(self, partitions, member_id, epoch)

    return patch.object(Coordinator, "committed", hasty)


def dangling_not_ended() -> Any:
    """Transactions of instances that are gone are left to their timeout."""

    def end_dangling(self: Activation) -> Steps:
        yield 1

    return patch.object(Activation, "end_dangling", end_dangling)


def restored_to_wrong_end() -> Any:
    """Stores are restored to what is stable, and not to what is there: a marker may come later than the offsets'."""
    return patch.object(Activation, "end", lambda self, changelog: self._cluster.logs[changelog].stable)


def restored_too_early() -> Any:
    """Stores are restored first, then dangling transactions are ended and committed offsets looked up.

    All counts once even so, as an epoch's offsets are sent after its changelog records; but it may take long.
    """

    def activate(self: Activation, task: TaskId, open_producer: Callable[[], Steps]) -> Steps:
        stores = yield from self._instance.open_stores(task)
        yield from open_producer()
        for name in sorted(stores):
            yield from self.restore(task, name, stores[name])
        yield from self.end_dangling()
        committed = yield from self.committed(task)
        for store in stores.values():
            store.writer = "epoch"
        return (yield from self.places(task, committed))

    return patch.object(Activation, "activate", activate)


def committed_by_nobody() -> Any:
    """Offsets are committed without the member's epoch."""
    return patch.object(
        Producer, "who", staticmethod(lambda member: member.group_metadata()._replace(member_id="", generation=-1))
    )


# The group ------------------------------------------------------------------------------------------------------------


def acknowledged_early() -> Any:
    """A revoked task is said to be given up while its epoch goes on."""
    return task_row(T.IN_EPOCH, TV.REVOKED, (TE.ACKNOWLEDGE,), T.SUSPENDING)


def lost_and_running() -> Any:
    """A lost task runs on."""
    return task_row(T.RUNNING, TV.LOST)


def lost_epoch_goes_on() -> Any:
    """The epoch of a lost task isn't aborted."""
    return all_of(
        task_row(T.IN_EPOCH, TV.LOST, (), T.SUSPENDING),
        task_row(T.COMMITTING, TV.LOST, (), T.SUSPENDING),
        task_row(T.SUSPENDING, TV.LOST),
    )


def revoked_epoch_aborted() -> Any:
    """A task that goes takes its epoch with it, and the tasks that stay begin again."""
    return task_row(T.IN_EPOCH, TV.REVOKED, (TE.ABORT_EPOCH,), T.ABORTING)


def demoted_in_silence() -> Any:
    """The group isn't told that a demoted task runs no longer."""
    return task_row(T.SUSPENDED, TV.WANT_COPY, (TE.FOLLOW,), T.OPENING)


def promoted_as_it_is() -> Any:
    """A copy that is promoted runs without being restored."""
    return task_row(T.FOLLOWING, TV.WANT_ACTIVE, (), T.RUNNING)


# Effects --------------------------------------------------------------------------------------------------------------


def reopened_without_closing() -> Any:
    """After a failed epoch stores count as closed, and are open."""
    return all_of(
        task_row(T.IN_EPOCH, TV.EPOCH_FAILED, (), T.CREATED),
        task_row(T.COMMITTING, TV.EPOCH_FAILED, (), T.CREATED),
        task_row(T.SUSPENDING, TV.EPOCH_FAILED, (), T.CREATED),
        task_row(T.ABORTING, TV.EPOCH_FAILED, (), T.CREATED),
    )


def due_ignored() -> Any:
    """After a pause nobody looks again."""
    return epoch_row(E.PAUSED, EV.DUE)


def never_tried_again() -> Any:
    """A restore that failed isn't tried again."""
    return task_row(T.RETRYING, TV.DUE)


def stale_outcomes_taken() -> Any:
    """Outcomes of effects that are over count."""

    def any_epoch_event(self: TaskManager, subtopology: str, operation: int, event: EV, why: str | None = None) -> Any:
        self.epochs[subtopology].happened(event, why, self._number())
        return self._done()

    return all_of(
        patch.object(TaskManager, "_at", lambda self, task_id, operation: self.tasks.get(task_id)),
        patch.object(TaskManager, "epoch_happened", any_epoch_event),
    )


# Timers ---------------------------------------------------------------------------------------------------------------


def timers_forgotten() -> Any:
    """A task is in an epoch only if it has something to read."""
    given = PollRound.__init__

    def without(self: PollRound, inputs: Any, ends: Any, due: Any = ()) -> None:
        given(self, inputs, ends)

    return patch.object(PollRound, "__init__", without)


def clock_stands_still() -> Any:
    """Jobs aren't told the time."""
    given = ChainEpochs._planned

    def timeless(self: ChainEpochs, plan: EpochPlan) -> Epoch:
        epoch = given(self, plan)
        epoch.epoch_input = replace(epoch.epoch_input, now=0)
        return epoch

    return patch.object(ChainEpochs, "_planned", timeless)


BREAKAGES: Final[tuple[Breakage, ...]] = (
    resent_when_unanswered, producer_not_closed, failed_and_going_on, store_passed_over, stored_before_commit,
    positions_not_advanced, positions_advanced_early, tasks_mixed, stream_time_lost, failures_never_reset,
    unstable_offsets_taken, dangling_not_ended, restored_to_wrong_end, restored_too_early, committed_by_nobody,
    acknowledged_early, lost_and_running, lost_epoch_goes_on, revoked_epoch_aborted, demoted_in_silence,
    promoted_as_it_is, merged_without_reading, merged_after_what_is_decided, topic_forgotten_when_tasks_come,
    merged_unfenced, reopened_without_closing, due_ignored, never_tried_again,
)  # fmt: skip

OF_PROGRAMS: Final[tuple[Breakage, ...]] = (
    timers_forgotten, clock_stands_still, stream_time_lost, positions_not_advanced, store_passed_over,
    promoted_as_it_is, tasks_mixed,
)  # fmt: skip
"""Noticed where tasks have joins, sessions or timers; the first ones only there."""

HARMLESS: Final[tuple[Breakage, ...]] = (stale_outcomes_taken, held_for_ever)
"""Not noticed, and nothing is wrong: an effect has one outcome, and where that is stale the tables ignore it."""


def noticed(breakage: Breakage, seeds: int, first: int = 1, kinds: Sequence[str] = KINDS) -> tuple[int, str] | None:
    """After how many seeds of such applications a breakage is noticed, and what is said; None if it isn't."""
    with breakage():
        for number in range(seeds):
            try:
                simulate(first + number, kinds=kinds)
            except InvariantError as error:
                return number + 1, re.sub(r"^seed \d+, at \d+: ", "", str(error).split("\n", 1)[0])
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.runtime.breakages", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="seeds to try each with, at most")
    parser.add_argument("--only", default="", help="those whose names contain this")
    options = parser.parse_args()
    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    missed = 0
    of_programs = [(each, PROGRAM_KINDS) for each in OF_PROGRAMS]
    for breakage, kinds in (*((each, KINDS) for each in (*BREAKAGES, *HARMLESS)), *of_programs):
        if options.only not in breakage.__name__:
            continue
        began = time.process_time()
        found = noticed(breakage, options.seeds, kinds=kinds)
        after, what = found or ("-", "not noticed; harmless" if breakage in HARMLESS else "NOT NOTICED")
        missed += found is None and breakage not in HARMLESS
        took = time.process_time() - began
        sys.stdout.write(f"{breakage.__name__:<26} {after:>4} seeds {took:5.1f} s  {what[:160]}\n")
        sys.stdout.flush()
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
