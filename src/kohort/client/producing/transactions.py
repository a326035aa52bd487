"""The states of a producer, and of its transactions: pure, as a table of transitions.

| in state       | initialized | begin          | commit     | decide | abort    | ended | abortable       | fatal |
| -------------- | ----------- | -------------- | ---------- | ------ | -------- | ----- | --------------- | ----- |
| UNINITIALIZED  | READY       |                |            |        |          |       |                 | FATAL |
| READY          | READY       | IN_TRANSACTION |            |        |          |       |                 | FATAL |
| IN_TRANSACTION |             |                | COMMITTING |        | ABORTING |       | ABORTABLE_ERROR | FATAL |
| COMMITTING     |             |                | COMMITTING | ENDING | ABORTING |       | ABORTABLE_ERROR | FATAL |
| ENDING         |             |                | ENDING     | ENDING |          | READY | ABORTABLE_ERROR | FATAL |
| ABORTABLE_ERROR |            |                |            |        | ABORTING |       | ABORTABLE_ERROR | FATAL |
| ABORTING       |             |                |            |        | ABORTING | READY | ABORTING        | FATAL |

COMMITTING delivers what was sent. ENDING has asked the coordinator to commit: its answer may be lost, so it can only be
asked again. Where the cluster has transaction.version 2 (KIP-890), writing to a partition or committing a group's
offsets adds these to the transaction by itself, and each end of a transaction raises the producer's epoch; before, the
producer adds them, and raises its epoch only after an error.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Final

from kohort.client.errors import ClosedError, FencedError, TransactionAbortableError
from kohort.client.producing.batch import Identity
from kohort.client.types import TopicPartition

__all__ = ["TRANSITIONS", "Event", "ProducerState", "State"]

_LAST_EPOCH: Final = 2**15 - 1


class State(enum.Enum):
    """Where a producer stands."""

    UNINITIALIZED = "the producer isn't started"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "the transaction is being committed"
    ENDING = "a commit was asked for, and isn't answered yet"
    ABORTABLE_ERROR = "the transaction failed"
    ABORTING = "the transaction is being aborted"
    FATAL_ERROR = "the producer failed"


class Event(enum.Enum):
    """What happens to it."""

    INITIALIZED = "start()"
    BEGIN = "begin_transaction()"
    COMMIT = "commit_transaction()"
    DECIDE = "EndTxn"
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
    (State.COMMITTING, Event.DECIDE): State.ENDING,
    (State.COMMITTING, Event.ABORT): State.ABORTING,
    (State.COMMITTING, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ENDING, Event.COMMIT): State.ENDING,
    (State.ENDING, Event.DECIDE): State.ENDING,
    (State.ENDING, Event.ENDED): State.READY,
    (State.ENDING, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ABORTABLE_ERROR, Event.ABORT): State.ABORTING,
    (State.ABORTABLE_ERROR, Event.ABORTABLE): State.ABORTABLE_ERROR,
    (State.ABORTING, Event.ABORT): State.ABORTING,
    (State.ABORTING, Event.ENDED): State.READY,
    (State.ABORTING, Event.ABORTABLE): State.ABORTING,
    **{(state, Event.FATAL): State.FATAL_ERROR for state in State},
}


class ProducerState:
    """A producer's id and epoch, and where its transaction stands.

    Args:
        transactional_id: None for a producer without transactions.

    Attributes:
        state: see `TRANSITIONS`.
        identity: the producer's id and epoch; None without idempotence, or while a new id is needed.
        implicit: whether the cluster has transaction.version 2.
        error: why it failed, in the two states of failure.
        refusal: what `send` raises; None if records are taken.
        started: whether anything is in the transaction, so that the coordinator must end it.
        stale_epoch: whether only a new epoch makes sequences right again.
        pending: partitions that must be added before they are written to.
    """

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.identity: Identity | None = None
        self.implicit = False
        self.error: Exception | None = None
        self.started = False
        self.stale_epoch = False
        self.pending: set[TopicPartition] = set()
        self._added: set[TopicPartition] = set()
        self.refusal: Exception | None = None
        self._closed = False
        self._refuse()

    @property
    def failed(self) -> bool:
        """Whether what is queued can't be delivered any more."""
        return self.state in (State.ABORTABLE_ERROR, State.ABORTING, State.FATAL_ERROR)

    def _on(self, event: Event) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise self._misuse(event) from None
        self._refuse()

    def _misuse(self, event: Event) -> Exception:
        if self.error is not None:
            return self._failure()
        if self.state is State.ENDING and event is Event.ABORT:
            return RuntimeError("commit_transaction() wasn't answered and may have happened: call it again to find out")
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

    def _refuse(self) -> None:
        if self._closed:
            self.refusal = ClosedError("the producer is closed")
        elif self.error is not None:
            self.refusal = self._failure()
        elif self.state is State.UNINITIALIZED:
            self.refusal = RuntimeError("the producer isn't started: use `async with`, or `await producer.start()`")
        elif self.transactional_id is None or self.state is State.IN_TRANSACTION:
            self.refusal = None
        elif self.state is State.READY:
            self.refusal = RuntimeError("a producer with a transactional_id sends in transactions: begin one first")
        else:
            self.refusal = RuntimeError(f"nothing more can be sent: {self.state.value}")

    def initialized(self, identity: Identity | None, *, implicit: bool = False) -> None:
        """The producer has an id, if it needs one."""
        self.identity, self.implicit = identity, implicit
        self._on(Event.INITIALIZED)

    def begin(self) -> None:
        """Open a transaction.

        Raises:
            RuntimeError: one is open already, or the producer has no transactions.
        """
        if self.transactional_id is None:
            raise self._misuse(Event.BEGIN)
        self._on(Event.BEGIN)

    def commit(self) -> None:
        """Take no more records.

        Raises:
            TransactionAbortableError: it failed.
            RuntimeError: none is open.
        """
        self._on(Event.COMMIT)

    def decide(self) -> None:
        """The coordinator is about to be asked to commit."""
        self._on(Event.DECIDE)

    def abort(self) -> None:
        """Give up what isn't sent.

        Raises:
            RuntimeError: no transaction is open, or it may be committed already.
        """
        self._on(Event.ABORT)
        self.error = None
        self.pending.clear()
        self._refuse()

    def ended(self, identity: Identity | None = None) -> None:
        """The transaction is over; with transaction.version 2 there is a new epoch, or a new id."""
        if identity is not None:
            self.identity = identity
        self.error = None
        self.started = self.stale_epoch = False
        self.pending.clear()
        self._added.clear()
        self._on(Event.ENDED)

    def abortable(self, error: Exception) -> None:
        """The transaction can't be committed. Without one, it is nothing to the producer."""
        if (self.state, Event.ABORTABLE) in TRANSITIONS:
            self.stale_epoch = True
            if self.state is not State.ABORTING:
                self.error = self.error or error
            self._on(Event.ABORTABLE)

    def fatal(self, error: Exception) -> None:
        """The producer can't go on. The first such error stays."""
        if self.state is not State.FATAL_ERROR:
            self.error = error
            self._on(Event.FATAL)

    def fenced(self, detail: object) -> None:
        """Another producer took the id, or the coordinator took it away."""
        self.fatal(
            FencedError(
                f"transactional id {self.transactional_id!r}: another producer uses it, or the transaction took longer "
                f"than transaction_timeout_ms; close this producer ({detail})"
            )
        )

    def close(self) -> None:
        """Take no more records."""
        self._closed = True
        self._refuse()

    # Partitions

    def add(self, partition: TopicPartition) -> None:
        """Records are about to be queued for a partition."""
        if self.transactional_id is None:
            return
        if self.implicit:
            self.started = True
            self._added.add(partition)
        elif partition not in self._added:
            self.pending.add(partition)

    def added(self, partitions: Collection[TopicPartition]) -> None:
        """The coordinator has them in the transaction."""
        self.started = True
        self._added.update(partitions)
        self.pending.difference_update(partitions)

    def may_write(self, partition: TopicPartition) -> bool:
        """Whether batches may be sent to a partition."""
        return not self.failed and (self.transactional_id is None or partition in self._added)

    # Epochs

    def bump(self) -> None:
        """Raise the epoch, without transactions (KIP-360). After the last epoch a new id is needed."""
        if self.identity is not None:
            producer_id, epoch = self.identity
            self.identity = Identity(producer_id, epoch + 1) if epoch < _LAST_EPOCH else None
