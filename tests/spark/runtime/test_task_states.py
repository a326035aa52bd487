"""The tables of tasks and epochs themselves: nothing hangs, and each outcome of an effect has its row."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kohort.spark.runtime import epoch_states
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.task_states import IN_AN_EPOCH, RESTING, TRANSITIONS, TaskEffect, TaskEvent, TaskState
from kohort.spark.runtime.transition_table import table_of

OUTCOMES = {
    TaskEffect.RESTORE: {TaskEvent.RESTORED, TaskEvent.FAILED},
    TaskEffect.FOLLOW: {TaskEvent.OPENED, TaskEvent.FAILED},
    TaskEffect.CANCEL: {TaskEvent.CANCELLED, TaskEvent.RESTORED, TaskEvent.OPENED, TaskEvent.FAILED},
    TaskEffect.WAIT: {TaskEvent.DUE},
    TaskEffect.ABORT_EPOCH: {TaskEvent.EPOCH_FAILED, TaskEvent.COMMITTED},
    TaskEffect.CLOSE: {TaskEvent.STORES_CLOSED},
    TaskEffect.ACKNOWLEDGE: set[TaskEvent](),
}
"""What can come of an effect for a task. Cancelled means the same as failed to whoever asked for it no more."""

EPOCH_OUTCOMES = {
    EpochEffect.GATHER: {EpochEvent.GATHERED},
    EpochEffect.LOOK: {EpochEvent.READY, EpochEvent.NOTHING, EpochEvent.UNSEEN, EpochEvent.NO_TASKS},
    EpochEffect.PAUSE: {EpochEvent.DUE},
    EpochEffect.JOB: {EpochEvent.JOB_DONE, EpochEvent.FAILED, EpochEvent.STOP, EpochEvent.LOST},
    EpochEffect.SEND: {
        EpochEvent.SENT, EpochEvent.SEND_AGAIN, EpochEvent.RESTART, EpochEvent.STOP, EpochEvent.LOST,
    },
    EpochEffect.COMMIT: {
        EpochEvent.COMMITTED, EpochEvent.UNANSWERED, EpochEvent.SEND_AGAIN, EpochEvent.RESTART, EpochEvent.STOP,
        EpochEvent.LOST,
    },
    EpochEffect.STORE: {EpochEvent.STORED, EpochEvent.FAILED},
    EpochEffect.SEND_LATER: {EpochEvent.DUE, EpochEvent.LOST},
    EpochEffect.ABORT: {EpochEvent.ABORTED},
    EpochEffect.BACK_OFF: {EpochEvent.DUE},
}  # fmt: skip


def test_every_outcome_of_an_effect_has_its_row() -> None:
    for effects, after in TRANSITIONS.values():
        for effect in effects:
            for event in OUTCOMES[effect]:
                assert (after, event) in TRANSITIONS, (
                    f"{effect.name} may come to {event.name}, which {after.name} ignores"
                )
    for epoch_effects, epoch_after in epoch_states.TRANSITIONS.values():
        for epoch_effect in epoch_effects:
            for epoch_event in EPOCH_OUTCOMES.get(epoch_effect, ()):
                assert (epoch_after, epoch_event) in epoch_states.TRANSITIONS, (epoch_effect, epoch_event, epoch_after)


def test_whatever_the_group_wants_is_decided_where_nothing_is_under_way() -> None:
    for state in RESTING:
        for event in (TaskEvent.WANT_ACTIVE, TaskEvent.WANT_COPY, TaskEvent.REVOKED, TaskEvent.LOST):
            assert (state, event) in TRANSITIONS


@pytest.mark.parametrize("state", [state for state in TaskState if state is not TaskState.CLOSED])
def test_a_task_that_is_lost_is_closed_whatever_comes_of_effects(state: TaskState) -> None:
    """With the worst outcome each time, too, as long as an effect has one."""
    group = {TaskEvent.WANT_ACTIVE, TaskEvent.WANT_COPY, TaskEvent.REVOKED}
    open_states, seen = {state}, set[TaskState]()
    while open_states:
        now = open_states.pop()
        seen.add(now)
        moves = {event: after for (before, event), (_, after) in TRANSITIONS.items() if before is now}
        if TaskEvent.LOST in moves:  # it is told at once, or when it comes to rest
            following = {moves[TaskEvent.LOST]}
        else:
            following = {after for event, after in moves.items() if event not in group}
        assert following or now is TaskState.CLOSED, f"{now.name} is never left"
        open_states |= following - seen
    assert TaskState.CLOSED in seen and not seen & {TaskState.FOLLOWING, TaskState.RUNNING} - {state}


def test_stores_are_written_only_by_what_is_committed() -> None:
    for (before, event), (effects, _) in epoch_states.TRANSITIONS.items():
        if EpochEffect.STORE in effects:
            assert (before, event) == (EpochState.COMMITTING, EpochEvent.COMMITTED)
        if EpochEffect.SEND in effects:
            assert event is EpochEvent.JOB_DONE or before is EpochState.RETRYING  # which was aborted


def test_states_are_all_reached() -> None:
    assert {after for _, after in TRANSITIONS.values()} | {TaskState.CREATED} == set(TaskState)
    assert {after for _, after in epoch_states.TRANSITIONS.values()} == set(EpochState)
    assert set(TaskState) > IN_AN_EPOCH


def test_a_table_has_one_row_for_a_state_and_an_event() -> None:
    row = (TaskState.CREATED, TaskEvent.DUE, (), TaskState.CREATED)
    with pytest.raises(ValueError, match="twice"):
        table_of([row, row])  # type: ignore[list-item]


@pytest.mark.parametrize("module", ["task_states", "epoch_states"])
def test_printed(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"kohort.spark.runtime.{module}"], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) > 30 and not done.stderr
