"""The state of a transactional id: its producer, and the transaction that is open, ending or over.

It is stored as one record of `__transaction_state`, which is written again with each transition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, NamedTuple, Self

from kohort.coordinator.step import Record
from kohort.coordinator.transactions.states import ENDED, IDLE, PREPARED, TRANSITIONS, TransactionState
from kohort.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kohort.protocol.topic_partition import TopicPartition

NONE: Final = -1
"""No producer id, no epoch, no time."""

LAST_EPOCH: Final = 32766
"""The last epoch that a producer gets; one more is left to fence it."""

TRANSACTIONS_V2: Final = 2
"""Each transaction has an epoch of its own (KIP-890, part 2)."""


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of a transactional id.

    Attributes:
        transactional_id: `transactional.id` of the producer.
        producer_id, producer_epoch: id and epoch of the producer; older epochs are fenced. A transaction that ends has
            the next epoch already (with transactions V2, or if the coordinator ended it).
        timeout_ms: how long a transaction may stay open.
        state: one of `states`.
        updated_at: time of the latest transition, in ms since 1970.
        started_at: when the latest transaction began, in ms since 1970; -1 if none has since InitProducerId.
        partitions: what the open transaction wrote to.
        previous_producer_id: the producer id before the latest transition.
        next_producer_id: the producer id after a transaction that uses up the epochs; else -1.
        client_version: 2 if the latest transition was one of transactions V2, else 0 or 1.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    updated_at: int = NONE
    started_at: int = NONE
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    client_version: int = 0

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def producer_after(self) -> ProducerIdAndEpoch:
        return self.producer if self.next_producer_id == NONE else ProducerIdAndEpoch(self.next_producer_id, 0)

    @property
    def exhausted(self) -> bool:
        """Whether the producer id has no epoch left."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def before_bump(self) -> ProducerIdAndEpoch | None:
        """Id and epoch that the producer of a transaction of V2 has until it gets the answer to EndTxn; else None."""
        if self.state not in PREPARED | ENDED or self.client_version < TRANSACTIONS_V2:
            return None
        if self.producer_epoch == 0:
            return ProducerIdAndEpoch(self.previous_producer_id, LAST_EPOCH)
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch - 1)

    # Transitions

    def with_producer(self, producer: ProducerIdAndEpoch, timeout_ms: int, now: int) -> Self:
        """Empty: its producer (re)started."""
        return self._transition(
            TransactionState.EMPTY,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_at=NONE,
            updated_at=now,
        )

    def with_partitions(self, partitions: Iterable[TopicPartition], client_version: int, now: int) -> Self:
        """Ongoing: it writes to more partitions; the first ones open a transaction."""
        return self._transition(
            TransactionState.ONGOING,
            partitions=self.partitions | frozenset(partitions),
            started_at=now if self.state in IDLE else self.started_at,
            updated_at=now,
            client_version=client_version,
        )

    def prepared(self, *, commit: bool, client_version: int, now: int, next_producer_id: int = NONE) -> Self:
        """PrepareCommit or PrepareAbort: the outcome is decided. In transactions V2 that takes the next epoch."""
        return self._transition(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + (client_version >= TRANSACTIONS_V2),
            next_producer_id=next_producer_id,
            started_at=now if self.state in IDLE else self.started_at,
            updated_at=now,
            client_version=client_version,
        )

    def fenced(self, now: int) -> Self:
        """PrepareAbort by the coordinator, which fences the producer's epoch."""
        return self.prepared(commit=False, client_version=TRANSACTIONS_V2, now=now)

    def completed(self, now: int) -> Self:
        """CompleteCommit or CompleteAbort: all partitions have their marker."""
        commit = self.state is TransactionState.PREPARE_COMMIT
        producer = self.producer_after
        return self._transition(
            TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            next_producer_id=NONE,
            partitions=frozenset(),
            updated_at=now,
        )

    def _transition(self, state: TransactionState, **changes: Any) -> Self:
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"transaction {self.transactional_id!r} can't go from {self.state.label} to {state.label}")
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)

    # Records

    def record(self) -> Record:
        topics = [
            TransactionLogValue.TransactionPartition(topic=topic, partition_ids=tuple(p.partition for p in partitions))
            for topic, partitions in groupby(sorted(self.partitions), lambda partition: partition.topic)
        ]
        return Record(
            TransactionLogKey(transactional_id=self.transactional_id),
            TransactionLogValue(
                producer_id=self.producer_id,
                previous_producer_id=self.previous_producer_id,
                next_producer_id=self.next_producer_id,
                producer_epoch=self.producer_epoch,
                transaction_timeout_ms=self.timeout_ms,
                transaction_status=self.state,
                transaction_partitions=None if self.state is TransactionState.EMPTY else topics,
                transaction_last_update_timestamp_ms=self.updated_at,
                transaction_start_timestamp_ms=self.started_at,
                client_transaction_version=self.client_version,
            ),
        )

    @classmethod
    def read(cls, key: TransactionLogKey, value: TransactionLogValue) -> Self:
        """The transaction in a record.

        Raises:
            ValueError: the state in the record is unknown.
        """
        return cls(
            transactional_id=key.transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=TransactionState(value.transaction_status),
            updated_at=value.transaction_last_update_timestamp_ms,
            started_at=value.transaction_start_timestamp_ms,
            partitions=frozenset(
                TopicPartition(topic.topic, partition)
                for topic in value.transaction_partitions or ()
                for partition in topic.partition_ids
            ),
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            client_version=value.client_transaction_version,
        )


def tombstone(transactional_id: str) -> Record:
    return Record(TransactionLogKey(transactional_id=transactional_id), None)
