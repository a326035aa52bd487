"""The states of a chain's epochs, and every move between them: one table.

All tasks of a chain that run here go through epochs together: look where the inputs end, run one Spark job over
what is there, send what it made in one transaction with the offsets, commit, write the state to the stores. A round is
one look, an epoch for each table that has news, and one for each stream.

Exactly once follows from three rules. A transaction is sent again only while nothing of it can count. If nobody knows
whether it counts, or the producer was fenced, the tasks begin from what is committed. Stores are written when the
transaction is committed, and never before.

**What the table doesn't have is ignored.** `python -m kohort.spark.runtime.epoch_states` prints the table.
"""

from __future__ import annotations

import enum
from typing import Final

from kohort.spark.runtime.transition_table import Row, shown, table_of


class EpochState(enum.Enum):
    """How far a subtopology is with its epoch. The value says what that means."""

    IDLE = "no task runs"
    GATHERING = "the first tasks run; others that are being restored have a moment to begin with them"
    LOOKING = "asks where the inputs end"
    PAUSED = "nothing to read, or no broker says so: looks again after a pause"
    IN_JOB = "a Spark job reads the epoch's records"
    SENDING = "what the job made is being sent in a transaction, with the offsets"
    COMMITTING = "the transaction is being committed"
    STORING = "what is committed is being written to the stores"
    RETRYING = "the transaction is aborted, and sent again after a pause"
    ABORTING = "a task of the epoch is lost: job and transaction are being aborted"
    RESTARTING = "the producer is being closed: the epoch's tasks begin from what is committed"
    BACKING_OFF = "waits after an epoch that failed"
    STOPPED = "the application can't go on"


class EpochEvent(enum.Enum):
    """What moves it. The value says from whom it comes, and what it means."""

    RUNNABLE = "task: one runs"
    GATHERED = "task, effect: none is being restored any more, or the moment is over"
    LOST = "task: one that is in the epoch is lost"
    READY = "look: there is something to read"
    ROUND_OVER = "look: all of the round is read"
    NOTHING = "look: there is nothing to read"
    SHORT = "look: an input ends before what was read of it, as a new leader may say for a moment"
    UNSEEN = "effect: the brokers don't say where the inputs end"
    NO_TASKS = "look: no task runs any more"
    DUE = "effect: the pause is over"
    JOB_DONE = "effect: the job is done"
    SENT = "effect: all is sent"
    SEND_AGAIN = "effect: refused; nothing of it counts, and it may be sent again"
    COMMITTED = "effect: the transaction counts"
    UNANSWERED = "effect: the coordinator didn't say whether it counts"
    STORED = "effect: the stores have it"
    RESTART = "effect: whether it counts isn't known, or the producer is fenced"
    FAILED = "effect: job, or what was done with its rows, failed"
    ABORTED = "effect: job and transaction are aborted"
    CLOSED = "effect: the producer is closed"
    STOP = "effect: trying again won't help"


class EpochEffect(enum.Enum):
    """What is to be done. The value says what that is."""

    GATHER = "wait a moment"
    LOOK = "ask where the inputs end"
    PAUSE = "wait before the next look"
    JOB = "run a Spark job over the epoch's records"
    SEND = "begin a transaction; send outputs, changelogs and offsets"
    COMMIT = "commit the transaction"
    STORE = "write what is committed to the stores"
    REPORT = "tell listeners of the epoch"
    SEND_LATER = "abort the transaction, and wait before it is sent again"
    ABORT = "cancel what is under way, the job too; close the producer, which aborts its transaction"
    CLOSE_PRODUCER = "close the producer, which aborts its transaction if it is open"
    BACK_OFF = "wait after the failure"
    STOP = "stop the application"


_S, _V, _E = EpochState, EpochEvent, EpochEffect
_ABORTABLE: Final = (_S.IN_JOB, _S.SENDING, _S.COMMITTING, _S.RETRYING)

_ROWS: Final[tuple[Row[EpochState, EpochEvent, EpochEffect], ...]] = (
    (_S.IDLE, _V.RUNNABLE, (_E.GATHER,), _S.GATHERING),
    (_S.GATHERING, _V.GATHERED, (_E.LOOK,), _S.LOOKING),
    (_S.LOOKING, _V.READY, (_E.JOB,), _S.IN_JOB),
    (_S.LOOKING, _V.ROUND_OVER, (_E.LOOK,), _S.LOOKING),
    (_S.LOOKING, _V.NOTHING, (_E.PAUSE,), _S.PAUSED),
    (_S.LOOKING, _V.SHORT, (_E.PAUSE,), _S.PAUSED),
    (_S.LOOKING, _V.UNSEEN, (_E.PAUSE,), _S.PAUSED),
    (_S.PAUSED, _V.DUE, (_E.LOOK,), _S.LOOKING),
    (_S.LOOKING, _V.NO_TASKS, (), _S.IDLE),
    # An epoch.
    (_S.IN_JOB, _V.JOB_DONE, (_E.SEND,), _S.SENDING),
    (_S.SENDING, _V.SENT, (_E.COMMIT,), _S.COMMITTING),
    (_S.COMMITTING, _V.COMMITTED, (_E.STORE,), _S.STORING),
    (_S.STORING, _V.STORED, (_E.REPORT,), _S.LOOKING),  # and on with the round
    # It may be sent again as long as nothing of it can count.
    ((_S.SENDING, _S.COMMITTING), _V.SEND_AGAIN, (_E.SEND_LATER,), _S.RETRYING),
    (_S.RETRYING, _V.DUE, (_E.SEND,), _S.SENDING),
    (_S.COMMITTING, _V.UNANSWERED, (_E.COMMIT,), _S.COMMITTING),
    # It can't go on: its tasks begin from what is committed.
    ((_S.IN_JOB, _S.STORING), _V.FAILED, (_E.CLOSE_PRODUCER,), _S.RESTARTING),
    ((_S.IN_JOB, _S.SENDING, _S.COMMITTING), _V.RESTART, (_E.CLOSE_PRODUCER,), _S.RESTARTING),
    (_S.RESTARTING, _V.CLOSED, (_E.BACK_OFF,), _S.BACKING_OFF),
    (_S.BACKING_OFF, _V.DUE, (), _S.IDLE),
    (_ABORTABLE, _V.LOST, (_E.ABORT,), _S.ABORTING),
    (_S.ABORTING, _V.ABORTED, (), _S.IDLE),
    ((_S.LOOKING, *_ABORTABLE, _S.STORING), _V.STOP, (_E.CLOSE_PRODUCER, _E.STOP), _S.STOPPED),
)

TRANSITIONS: Final = table_of(_ROWS)


if __name__ == "__main__":
    import sys

    sys.stdout.writelines(f"{line}\n" for line in shown(EpochState, TRANSITIONS))
