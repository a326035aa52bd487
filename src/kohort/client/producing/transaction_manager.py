"""The states of a producer and of its transaction, as a table of transitions. Pure.

| in state        | initialized | begin          | commit     | end_txn | abort    | ended | abortable       | fatal |
| --------------- | ----------- | -------------- | ---------- | ------- | -------- | ----- | --------------- | ----- |
| UNINITIALIZED   | READY       |                |            |         |          |       |                 | FATAL |
| READY           | READY       | IN_TRANSACTION |            |         |          |       |                 | FATAL |
| IN_TRANSACTION  |             |                | COMMITTING |         | ABORTING |       | ABORTABLE_ERROR | FATAL |
| COMMITTING      |             |                | COMMITTING | ENDING  | ABORTING |       | ABORTABLE_ERROR | FATAL |
| ENDING          |             |                | ENDING     | ENDING  |          | READY | ABORTABLE_ERROR | FATAL |
| ABORTABLE_ERROR |             |                |            |         | ABORTING |       | ABORTABLE_ERROR | FATAL |
| ABORTING        |             |                |            |         | ABORTING | READY | ABORTING        | FATAL |

COMMITTING delivers what was sent. ENDING has sent EndTxn to commit: the response may be lost, so it can only be sent
again. Where the cluster has transaction.version 2 (KIP-890), writing to a partition or committing a group's offsets
adds these to the transaction, and each end of a transaction bumps the producer's epoch; before, the producer adds them,
and bumps its epoch only after an error.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Final

from kohort.client.errors import ClosedError, FencedError, TransactionAbortableError
from kohort.client.producing.batch import Identity
from kohort.client.types import TopicPartition

_LAST_EPOCH: Final = 2**15 - 1


class State(enum.Enum):
    UNINITIALIZED = "the producer isn't started"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "the transaction is being committed"
    ENDING = "a commit was requested, and has no response yet"
    ABORTABLE_ERROR = "the transaction failed"
    ABORTING = "the transaction is being aborted"
    FATAL_ERROR = "the producer failed"


class Event(enum.Enum):
    INITIALIZED = "start()"
    BEGIN = "begin_transaction()"
    COMMIT = "commit_transaction()"
    END_TXN = "EndTxn"
    ABORT = "abort_transaction()"
    ENDED = "the end of the transaction"
    ABORTABLE = "an error"
    FATAL = "a fatal error"


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.UNINITIALIZED, Event.INITIALIZED): State.READY,
    (State.READY, Event.INITIALIZED): State.READY,
    (State.READY, Event.BEGIN): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.COMMIT): State.COMMITTING,
    (State.IN_TRANSACTION, Event.ABORT): State.ABORTING,
    (State.IN_TRANSACTION, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.COMMITTING, Event.COMMIT): State.COMMITTING,
    (State.COMMITTING, Event.END_TXN): State.ENDING,
    (State.COMMITTING, Event.ABORT): State.ABORTING,
    (State.COMMITTING, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ENDING, Event.COMMIT): State.ENDING,
    (State.ENDING, Event.END_TXN): State.ENDING,
    (State.ENDING, Event.ENDED): State.READY,
    (State.ENDING, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ABORTABLE_ERROR, Event.ABORT): State.ABORTING,
    (State.ABORTABLE_ERROR, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ABORTING, Event.ABORT): State.ABORTING,
    (State.ABORTING, Event.ENDED): State.READY,
    (State.ABORTING, Event.ABORTABLE): State.ABORTING,
    **{(state, Event.FATAL): State.FATAL_ERROR for state in State},
}


class TransactionManager:
    """A producer's id and epoch, and the state of its transaction.

    Args:
        transactional_id: None for a producer without transactions.

    Attributes:
        state: see `TRANSITIONS`.
        identity: the producer's id and epoch; None without idempotence, or while a new id is needed.
        transaction_v2: whether the cluster has transaction.version 2.
        error: why it failed, in the two error states.
        send_error: what `send` raises; None if records are taken.
        started: whether the transaction has partitions or offsets, so that the coordinator must end it.
        epoch_bump_needed: whether sequences are only right again under a new epoch.
        pending: partitions to add to the transaction before they are written to.
    """

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.identity: Identity | None = None
        self.transaction_v2 = False
        self.error: Exception | None = None
        self.started = False
        self.epoch_bump_needed = False
        self.pending: set[TopicPartition] = set()
        self._added: set[TopicPartition] = set()
        self.send_error: Exception | None = None
        self._closed = False
        self._update_send_error()

    @property
    def failed(self) -> bool:
        """Whether queued batches can't be delivered any more."""
        return self.state in (State.ABORTABLE_ERROR, State.ABORTING, State.FATAL_ERROR)

    def _on(self, event: Event) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise self._misuse(event) from None
        self._update_send_error()

    def _misuse(self, event: Event) -> Exception:
        if self.error is not None:
            return self._failure()
        if self.state is State.ENDING and event is Event.ABORT:
            return RuntimeError("commit_transaction() got no response and may have happened: call it again to find out")
        if self.transactional_id is None:
            return RuntimeError(f"{event.value}: the producer has no transactional_id")
        return RuntimeError(f"{event.value}: {self.state.value}")

    def _failure(self) -> Exception:
        assert self.error is not None
        if self.state is not State.FATAL_ERROR:
            failure = TransactionAbortableError(f"the transaction failed and must be aborted: {self.error}")
            failure.__cause__ = self.error
            return failure
        return self.error

    def _update_send_error(self) -> None:
        if self._closed:
            self.send_error = ClosedError("the producer is closed")
        elif self.error is not None:
            self.send_error = self._failure()
        elif self.state is State.UNINITIALIZED:
            self.send_error = RuntimeError("the producer isn't started: use `async with`, or `await producer.start()`")
        elif self.transactional_id is None or self.state is State.IN_TRANSACTION:
            self.send_error = None
        elif self.state is State.READY:
            self.send_error = RuntimeError("a producer with a transactional_id sends in transactions: begin one first")
        else:
            self.send_error = RuntimeError(f"nothing more can be sent: {self.state.value}")

    def initialized(self, identity: Identity | None, *, transaction_v2: bool = False) -> None:
        """The producer has got an id, if it needs one."""
        self.identity, self.transaction_v2 = identity, transaction_v2
        self._on(Event.INITIALIZED)

    def begin(self) -> None:
        """Opens a transaction.

        Raises:
            RuntimeError: one is open already, or the producer has no transactions.
        """
        if self.transactional_id is None:
            raise self._misuse(Event.BEGIN)
        self._on(Event.BEGIN)

    def commit(self) -> None:
        """Takes no more records, to commit.

        Raises:
            TransactionAbortableError: it failed.
            RuntimeError: none is open.
        """
        self._on(Event.COMMIT)

    def end_txn_sent(self) -> None:
        """EndTxn is about to be sent, to commit."""
        self._on(Event.END_TXN)

    def abort(self) -> None:
        """Starts to abort.

        Raises:
            RuntimeError: no transaction is open, or it may be committed already.
        """
        self._on(Event.ABORT)
        self.error = None
        self.pending.clear()
        self._update_send_error()

    def ended(self, identity: Identity | None = None) -> None:
        """The transaction has ended; with transaction.version 2 there is a new epoch, or a new id."""
        if identity is not None:
            self.identity = identity
        self.error = None
        self.started = self.epoch_bump_needed = False
        self.pending.clear()
        self._added.clear()
        self._on(Event.ENDED)

    def abortable(self, error: Exception) -> None:
        """Fails the transaction: it can only be aborted. Has no effect without one."""
        if (self.state, Event.ABORTABLE) in TRANSITIONS:
            self.epoch_bump_needed = True
            if self.state is not State.ABORTING:
                self.error = self.error or error
            self._on(Event.ABORTABLE)

    def fatal(self, error: Exception) -> None:
        """Fails the producer for good. The first such error stays."""
        if self.state is not State.FATAL_ERROR:
            self.error = error
            self._on(Event.FATAL)

    def fenced(self, detail: object) -> None:
        """The producer is fenced: another one uses the transactional id, or the coordinator aborted a transaction."""
        self.fatal(
            FencedError(
                f"transactional id {self.transactional_id!r}: another producer uses it, or the transaction took longer "
                f"than transaction_timeout_ms; close this producer ({detail})"
            )
        )

    def close(self) -> None:
        self._closed = True
        self._update_send_error()

    # Partitions

    def add(self, partition: TopicPartition) -> None:
        """Records are about to be queued for a partition."""
        if self.transactional_id is None:
            return
        if self.transaction_v2:
            self.started = True
            self._added.add(partition)
        elif partition not in self._added:
            self.pending.add(partition)

    def added(self, partitions: Collection[TopicPartition]) -> None:
        self.started = True
        self._added.update(partitions)
        self.pending.difference_update(partitions)

    def may_write(self, partition: TopicPartition) -> bool:
        return not self.failed and (self.transactional_id is None or partition in self._added)

    # Epochs

    def bump_epoch(self) -> None:
        """Bumps the epoch, without transactions (KIP-360). After the last epoch a new id is needed."""
        if self.identity is not None:
            producer_id, epoch = self.identity
            self.identity = Identity(producer_id, epoch + 1) if epoch < _LAST_EPOCH else None
