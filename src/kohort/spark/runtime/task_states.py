"""The states of a task, and every move between them: one table.

A task is moved by what the group wants of it, by what came of the effect that is under way, and by its subtopology's
epochs. Whatever the group wants while something is under way is kept (`LocalTask.wanted`), and decided on when that is
over: in CREATED and SUSPENDED nothing is under way, and the task manager goes on from there at once, by what is
wanted. **What the table doesn't have is ignored.** So a task that is opened, moved, revoked and lost within a moment
is opened and closed in order, and never two things are done with it at a time.

`python -m kohort.spark.runtime.task_states` prints the table.
"""

from __future__ import annotations

import enum
from typing import Final

from kohort.spark.runtime.transition_table import Row, shown, table_of


class TaskState(enum.Enum):
    """How far a task is. The value says what that means."""

    CREATED = "its stores are closed; nothing is under way"
    SUSPENDED = "its stores may be open; nothing is under way"
    OPENING = "standby or warm-up: its stores are being opened"
    FOLLOWING = "standby or warm-up: its stores follow their changelogs"
    RESTORING = "active: what is committed is looked up, and its stores are restored"
    RUNNING = "active: the next epoch takes it in"
    IN_EPOCH = "active: a job reads its records"
    COMMITTING = "active: what its epoch made is being committed, and written to its stores"
    SUSPENDING = "revoked or demoted: to be given up when its epoch is over"
    ABORTING = "lost: its epoch is being aborted"
    CANCELLING = "opening or restoring it is being cancelled"
    RETRYING = "opening or restoring it failed, and is tried again after a pause"
    CLOSING = "its stores are being closed"
    CLOSED = "given up; the group knows"


class TaskEvent(enum.Enum):
    """What moves a task. The value says from whom it comes, and what it means."""

    WANT_ACTIVE = "group: assigned or promoted, it is to run"
    WANT_COPY = "group: assigned as, or demoted to, a standby or a warm-up"
    REVOKED = "group: to be given up, after its epoch"
    LOST = "group: others may have it already (the member was fenced): to be given up at once"
    OPENED = "effect: its stores follow their changelogs"
    RESTORED = "effect: its stores are restored, and it is known where it reads on"
    FAILED = "effect: that didn't work, and may later"
    CANCELLED = "effect: was cancelled"
    DUE = "effect: the pause is over"
    STORES_CLOSED = "effect: its stores are closed"
    EPOCH_BEGUN = "epoch: a job reads its records"
    JOB_DONE = "epoch: the job is done"
    COMMITTED = "epoch: committed, and written to the stores"
    EPOCH_FAILED = "epoch: over without having been committed, or nobody knows: the task begins from what is committed"


class TaskEffect(enum.Enum):
    """What is to be done. The value says what that is."""

    RESTORE = "end dangling transactions, look up what is committed, restore the stores"
    FOLLOW = "open the stores and have them follow their changelogs"
    CANCEL = "cancel what is under way"
    WAIT = "wait before it is tried again"
    ABORT_EPOCH = "abort the epoch that the task is in"
    CLOSE = "stop following, close the stores"
    ACKNOWLEDGE = "tell the group that the task is given up, if the group waits for that"


_S, _V, _E = TaskState, TaskEvent, TaskEffect
_UNWANTED: Final = (_V.REVOKED, _V.LOST)
_WANTED: Final = (_V.WANT_ACTIVE, _V.WANT_COPY)

_ROWS: Final[tuple[Row[TaskState, TaskEvent, TaskEffect], ...]] = (
    # Nothing is under way: what the group wants decides.
    (_S.CREATED, _V.WANT_ACTIVE, (_E.RESTORE,), _S.RESTORING),
    (_S.CREATED, _V.WANT_COPY, (_E.ACKNOWLEDGE, _E.FOLLOW), _S.OPENING),
    (_S.CREATED, _UNWANTED, (_E.ACKNOWLEDGE,), _S.CLOSED),
    (_S.SUSPENDED, _V.WANT_ACTIVE, (_E.RESTORE,), _S.RESTORING),
    (_S.SUSPENDED, _V.WANT_COPY, (_E.ACKNOWLEDGE, _E.FOLLOW), _S.OPENING),
    (_S.SUSPENDED, _UNWANTED, (_E.CLOSE,), _S.CLOSING),
    # A standby or a warm-up; it is promoted as it is.
    (_S.OPENING, _V.OPENED, (), _S.FOLLOWING),
    (_S.OPENING, (_V.FAILED, _V.CANCELLED), (_E.WAIT,), _S.RETRYING),
    (_S.OPENING, (_V.WANT_ACTIVE, *_UNWANTED), (_E.CANCEL,), _S.CANCELLING),
    (_S.FOLLOWING, _V.WANT_ACTIVE, (_E.RESTORE,), _S.RESTORING),
    (_S.FOLLOWING, _UNWANTED, (_E.CLOSE,), _S.CLOSING),
    # An active task, on its way to run.
    (_S.RESTORING, _V.RESTORED, (), _S.RUNNING),
    (_S.RESTORING, (_V.FAILED, _V.CANCELLED), (_E.WAIT,), _S.RETRYING),
    (_S.RESTORING, (_V.WANT_COPY, *_UNWANTED), (_E.CANCEL,), _S.CANCELLING),
    (_S.CANCELLING, (_V.CANCELLED, _V.OPENED, _V.RESTORED, _V.FAILED), (), _S.SUSPENDED),
    (_S.RETRYING, (_V.DUE, *_WANTED, *_UNWANTED), (), _S.SUSPENDED),
    # It runs: epoch after epoch.
    (_S.RUNNING, _V.EPOCH_BEGUN, (), _S.IN_EPOCH),
    (_S.RUNNING, (_V.WANT_COPY, *_UNWANTED), (), _S.SUSPENDED),
    (_S.IN_EPOCH, _V.JOB_DONE, (), _S.COMMITTING),
    (_S.COMMITTING, _V.COMMITTED, (), _S.RUNNING),
    ((_S.IN_EPOCH, _S.COMMITTING), _V.EPOCH_FAILED, (_E.CLOSE,), _S.CLOSING),
    # It is given up: when its epoch is over, or at once.
    ((_S.IN_EPOCH, _S.COMMITTING), (_V.WANT_COPY, _V.REVOKED), (), _S.SUSPENDING),
    ((_S.IN_EPOCH, _S.COMMITTING, _S.SUSPENDING), _V.LOST, (_E.ABORT_EPOCH,), _S.ABORTING),
    ((_S.SUSPENDING, _S.ABORTING), _V.COMMITTED, (), _S.SUSPENDED),
    ((_S.SUSPENDING, _S.ABORTING), _V.EPOCH_FAILED, (_E.CLOSE,), _S.CLOSING),
    (_S.CLOSING, _V.STORES_CLOSED, (), _S.CREATED),
)

TRANSITIONS: Final = table_of(_ROWS)

RESTING: Final = frozenset({_S.CREATED, _S.SUSPENDED})
"""States in which nothing is under way: the task manager goes on at once."""

IN_AN_EPOCH: Final = frozenset({_S.IN_EPOCH, _S.COMMITTING, _S.SUSPENDING, _S.ABORTING})


if __name__ == "__main__":
    import sys

    sys.stdout.writelines(f"{line}\n" for line in shown(TaskState, TRANSITIONS))
