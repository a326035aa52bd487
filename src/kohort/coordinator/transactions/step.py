"""Steps of the transaction coordinator, which have markers to write besides records and answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.coordinator.step import Step
from kohort.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers that end a transaction in every partition that it wrote to.

    The runtime, at once and in this order: asks `TransactionShard.pending_markers` where they are still due, appends
    them there, and calls `TransactionShard.markers_written` with the partitions where that worked, and those that don't
    exist (any more). The others will be asked for again; after a restart, all of them.

    Attributes:
        producer_id, producer_epoch: those of the control batches.
        commit: whether it is committed or aborted.
        coordinator_epoch: epoch of the coordinator, part of the control record.
        transaction_version: 2 if the epoch is one above that of the transaction's own batches (KIP-890), else 0 or 1.
        partitions: where markers go, sorted; may be empty.
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
    """A step, and the markers to write when its records are in the log."""

    markers: list[Markers] = field(default_factory=list)
