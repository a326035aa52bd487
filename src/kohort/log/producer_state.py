"""Producer state of a log: epochs, sequences, ongoing transactions (KIP-98, KIP-890).

The rules are those of Kafka 4.2. The state has the five latest batches of each producer, to recognize duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.log.types import ProducerSummary
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader

BATCHES_KEPT: Final = 5
NO_OFFSET: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

_MAX_SEQUENCE: Final = 2**31 - 1
_EPOCH_BUMPS: Final = 2
"""The transaction version with an epoch bump for each transaction (transaction.version)."""


class BatchMetadata(NamedTuple):
    """An appended batch: its sequences, last offset, number of records - 1, and latest timestamp (ms)."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class EndTransactionMarker(NamedTuple):
    commit: bool
    coordinator_epoch: int


class ProducerState:
    """The state of one producer; `first_offset` is that of its ongoing transaction, -1 without one."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_offset", "last_timestamp", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        self.first_offset = NO_OFFSET
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        """Sequence of its last record in this epoch, -1 before the first."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of its last record in this epoch, -1 before the first."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def set_epoch(self, epoch: int) -> None:
        """Sequences start again with a new epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducerStates:
    """The state of a log's producers.

    Attributes:
        by_id: states by producer id.
        ongoing: first offsets of ongoing transactions by producer id, ascending.
    """

    __slots__ = ("by_id", "ongoing")

    def __init__(self) -> None:
        self.by_id: dict[int, ProducerState] = {}
        self.ongoing: dict[int, int] = {}

    def duplicate(self, header: BatchHeader, last_sequence: int) -> BatchMetadata | None:
        """Returns the appended batch if this one duplicates it."""
        state = self.by_id.get(header.producer_id)
        if state is not None and state.epoch == header.producer_epoch:
            first = header.base_sequence
            for batch in state.batches:
                if batch.first_sequence == first and batch.last_sequence == last_sequence:
                    return batch
        return None

    def check(self, header: BatchHeader, *, sequenced: bool, transaction_version: int) -> None:
        """Validates the epoch, sequence and transaction of a batch.

        Args:
            sequenced: whether it has sequences; a coordinator's batch has none.
            transaction_version: 2 if its transaction has an epoch of its own (Produce from version 12 on).

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        state = self.by_id.get(header.producer_id)
        sequence = header.base_sequence
        if state is None:
            # A producer whose state has expired may go on with any sequence, unless this starts a transaction.
            if sequenced and sequence and header.transactional and transaction_version >= _EPOCH_BUMPS:
                raise _out_of_order(header, "the producer has no state here, so it must start with 0")
            return
        if header.producer_epoch < state.epoch:
            raise _old_epoch(header.producer_id, header.producer_epoch, state.epoch)
        if sequenced:
            if header.producer_epoch != state.epoch:
                if sequence and state.epoch != NO_PRODUCER_EPOCH:
                    raise _out_of_order(header, "a new epoch must start with 0")
            else:
                last = state.last_sequence
                if sequence != last + 1 and not (sequence == 0 and last == _MAX_SEQUENCE):
                    raise _out_of_order(header, f"the last one was {last}")
        if state.first_offset >= 0 and not header.transactional:
            reason = (
                f"producer {header.producer_id} writes outside its transaction, which started at {state.first_offset}"
            )
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Validates a marker.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        state = self.by_id.get(producer_id)
        if state is None:
            return
        if transaction_version >= _EPOCH_BUMPS:
            # The marker bumps the epoch; the same epoch is a duplicate of that marker.
            valid = epoch > state.epoch or (epoch == state.epoch and state.first_offset < 0)
        else:
            valid = epoch >= state.epoch
        if not valid:
            raise _old_epoch(producer_id, epoch, state.epoch)
        if coordinator_epoch < state.coordinator_epoch:
            reason = f"coordinator epoch {coordinator_epoch}; producer {producer_id} is at {state.coordinator_epoch}"
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, reason)

    def append_batch(self, header: BatchHeader, base_offset: int, last_sequence: int, timestamp: int) -> None:
        """Applies a batch of data, appended at `base_offset`."""
        producer_id, delta = header.producer_id, header.last_offset_delta
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = ProducerState(producer_id)
        producer.set_epoch(header.producer_epoch)
        batches = producer.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(BatchMetadata(header.base_sequence, last_sequence, base_offset + delta, delta, timestamp))
        producer.last_timestamp = timestamp
        if producer.first_offset < 0 and header.transactional:
            producer.first_offset = self.ongoing[producer_id] = base_offset

    def append_marker(self, producer_id: int, epoch: int, marker: EndTransactionMarker, timestamp: int) -> int:
        """Applies a marker; returns the first offset of the transaction that it ends, -1 if there was none."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = ProducerState(producer_id)
        producer.set_epoch(epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        first, producer.first_offset = producer.first_offset, NO_OFFSET
        self.ongoing.pop(producer_id, None)
        return first

    def add(self, producer: ProducerState) -> None:
        """Adds a producer from a snapshot."""
        self.by_id[producer.producer_id] = producer
        if producer.first_offset >= 0:
            self.ongoing[producer.producer_id] = producer.first_offset
            self.ongoing = dict(sorted(self.ongoing.items(), key=lambda item: item[1]))

    def expire(self, now: int, expiration_ms: int) -> int:
        """Expires producers that are idle for `expiration_ms` and have no ongoing transaction; returns how many."""
        idle = [
            producer.producer_id
            for producer in self.by_id.values()
            if producer.first_offset < 0 and now - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        return len(idle)

    def summaries(self) -> Iterator[ProducerSummary]:
        for producer in self.by_id.values():
            yield ProducerSummary(
                producer.producer_id, producer.epoch, producer.last_sequence, producer.last_timestamp,
                producer.coordinator_epoch, producer.first_offset,
            )  # fmt: skip


def _out_of_order(header: BatchHeader, rule: str) -> KafkaError:
    who = f"producer {header.producer_id} with epoch {header.producer_epoch}"
    return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{who} sent sequence {header.base_sequence}; {rule}")


def _old_epoch(producer_id: int, epoch: int, current: int) -> KafkaError:
    reason = f"producer {producer_id} has epoch {epoch}, but the current epoch is {current}"
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
