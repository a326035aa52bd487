"""What a step of the transaction coordinator asks for besides records and answers: markers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.coordinator.step import Step
from kohort.protocol.topic_partition import TopicPartition

__all__ = ["Markers", "TransactionStep"]


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers that end a transaction in every partition that it wrote to.

    What is to be done with them, at once and in this order: ask `TransactionShard.unmarked` where they are still due,
    append them there, and tell `TransactionShard.markers_written` where that worked, or where there is no such
    partition (any more). What is left will be asked for again; and after a restart, so will be all of them.

    Attributes:
        transactional_id: whose transaction ends.
        producer_id, producer_epoch: what the control batches carry.
        commit: whether it is committed or aborted.
        coordinator_epoch: epoch of the coordinator, part of the control record.
        transaction_version: 2 if the epoch is one above that of the transaction's own batches (KIP-890), else 0 or 1.
        partitions: where markers go, sorted; may be none.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class TransactionStep(Step):
    """A step, and the markers to write when its records are safe."""

    markers: list[Markers] = field(default_factory=list)
