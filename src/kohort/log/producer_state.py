"""What a log knows of the producers that write to it: epochs, sequences, ongoing transactions (KIP-98, KIP-890).

The rules are those of Kafka 4.2. The five latest batches of each producer are remembered, so that one sent again is
answered instead of written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.log.types import ProducerSummary
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader

__all__ = ["BatchMetadata", "EndTransactionMarker", "ProducerState", "ProducerStates"]

REMEMBERED: Final = 5
NO_OFFSET: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

_MAX_SEQUENCE: Final = 2**31 - 1
_EPOCH_BUMPS: Final = 2
"""Version of transactions from which every transaction has an epoch of its own."""


class BatchMetadata(NamedTuple):
    """A batch that was written: its sequences, last offset, number of records less one, latest timestamp (ms)."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class EndTransactionMarker(NamedTuple):
    """What the control batch that ends a transaction says."""

    commit: bool
    coordinator_epoch: int


class ProducerState:
    """A producer as one log sees it; `first_offset` is where its ongoing transaction began, -1 without one."""

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

    def enter(self, epoch: int) -> None:
        """Sequences start again with an epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducerStates:
    """The producers of a log.

    Attributes:
        by_id: those it knows.
        ongoing: where the ongoing transactions began, by producer id; they ascend.
    """

    __slots__ = ("by_id", "ongoing")

    def __init__(self) -> None:
        self.by_id: dict[int, ProducerState] = {}
        self.ongoing: dict[int, int] = {}

    def duplicate(self, header: BatchHeader, last_sequence: int) -> BatchMetadata | None:
        """The batch that was written, if this is one of the latest sent again."""
        known = self.by_id.get(header.producer_id)
        if known is not None and known.epoch == header.producer_epoch:
            first = header.base_sequence
            for past in known.batches:
                if past.first_sequence == first and past.last_sequence == last_sequence:
                    return past
        return None

    def check(self, header: BatchHeader, *, sequenced: bool, transaction_version: int) -> None:
        """Whether the producer may write this batch now.

        Args:
            header: of the batch.
            sequenced: whether it has sequences; a coordinator's hasn't.
            transaction_version: 2 if its transaction has an epoch of its own (Produce from version 12 on).

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        known = self.by_id.get(header.producer_id)
        sequence = header.base_sequence
        if known is None:
            # Whoever isn't known any more goes on with any sequence, unless its transaction has just begun.
            if sequenced and sequence and header.transactional and transaction_version >= _EPOCH_BUMPS:
                raise _out_of_order(header, "the producer isn't known here, so it begins with 0")
            return
        if header.producer_epoch < known.epoch:
            raise _old_epoch(header.producer_id, header.producer_epoch, known.epoch)
        if sequenced:
            if header.producer_epoch != known.epoch:
                if sequence and known.epoch != NO_PRODUCER_EPOCH:
                    raise _out_of_order(header, "a new epoch begins with 0")
            else:
                last = known.last_sequence
                if sequence != last + 1 and not (sequence == 0 and last == _MAX_SEQUENCE):
                    raise _out_of_order(header, f"it comes after {last}")
        if known.first_offset >= 0 and not header.transactional:
            reason = (
                f"producer {header.producer_id} writes outside its transaction, which began at {known.first_offset}"
            )
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Whether a transaction may be ended with this marker.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        known = self.by_id.get(producer_id)
        if known is None:
            return
        if transaction_version >= _EPOCH_BUMPS:
            # The marker bumps the epoch; one of the same epoch is that marker sent again.
            valid = epoch > known.epoch or (epoch == known.epoch and known.first_offset < 0)
        else:
            valid = epoch >= known.epoch
        if not valid:
            raise _old_epoch(producer_id, epoch, known.epoch)
        if coordinator_epoch < known.coordinator_epoch:
            reason = f"coordinator epoch {coordinator_epoch}; producer {producer_id} knows {known.coordinator_epoch}"
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, reason)

    def wrote(self, header: BatchHeader, base_offset: int, last_sequence: int, timestamp: int) -> None:
        """A batch of data went into the log at `base_offset`."""
        producer_id, delta = header.producer_id, header.last_offset_delta
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = ProducerState(producer_id)
        producer.enter(header.producer_epoch)
        batches = producer.batches
        if len(batches) == REMEMBERED:
            del batches[0]
        batches.append(BatchMetadata(header.base_sequence, last_sequence, base_offset + delta, delta, timestamp))
        producer.last_timestamp = timestamp
        if producer.first_offset < 0 and header.transactional:
            producer.first_offset = self.ongoing[producer_id] = base_offset

    def ended(self, producer_id: int, epoch: int, marker: EndTransactionMarker, timestamp: int) -> int:
        """A marker went into the log; returns where the transaction that it ends began, -1 if there was none."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = ProducerState(producer_id)
        producer.enter(epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        first, producer.first_offset = producer.first_offset, NO_OFFSET
        self.ongoing.pop(producer_id, None)
        return first

    def add(self, producer: ProducerState) -> None:
        """Know a producer from a snapshot."""
        self.by_id[producer.producer_id] = producer
        if producer.first_offset >= 0:
            self.ongoing[producer.producer_id] = producer.first_offset
            self.ongoing = dict(sorted(self.ongoing.items(), key=lambda item: item[1]))

    def expire(self, now: int, expiration_ms: int) -> int:
        """Forget whoever has been silent for `expiration_ms` and has no ongoing transaction; returns how many."""
        silent = [
            producer.producer_id
            for producer in self.by_id.values()
            if producer.first_offset < 0 and now - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in silent:
            del self.by_id[producer_id]
        return len(silent)

    def summaries(self) -> Iterator[ProducerSummary]:
        """All that are known."""
        for producer in self.by_id.values():
            yield ProducerSummary(
                producer.producer_id, producer.epoch, producer.last_sequence, producer.last_timestamp,
                producer.coordinator_epoch, producer.first_offset,
            )  # fmt: skip


def _out_of_order(header: BatchHeader, rule: str) -> KafkaError:
    who = f"producer {header.producer_id} with epoch {header.producer_epoch}"
    return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{who} sent sequence {header.base_sequence}; {rule}")


def _old_epoch(producer_id: int, epoch: int, current: int) -> KafkaError:
    reason = f"producer {producer_id} came with epoch {epoch}; it is at {current} here"
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
