"""Transactions as the broker sees them: shards in `__transaction_state`, and the markers that end transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.broker.config.derive import transaction_settings
from kohort.broker.runtime import CoordinatorRuntime, Entry
from kohort.broker.topics import Partition
from kohort.coordinator.step import Step
from kohort.coordinator.transactions import (
    Markers,
    PartitionErrors,
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionShard,
    TransactionStep,
)  # fmt: skip
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored import TRANSACTION_TOPIC

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

__all__ = ["TransactionRuntime"]

log = logging.getLogger("kohort.broker.transactions")


class TransactionRuntime(CoordinatorRuntime[TransactionShard]):
    """The shards of the transaction coordinator."""

    def __init__(self, broker: Broker) -> None:
        config = broker.config
        super().__init__(
            broker,
            TRANSACTION_TOPIC,
            config.int("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
            },
        )
        self._settings = transaction_settings(config)

    def make(self, partition: int) -> TransactionShard:
        """A new, empty shard."""
        return TransactionShard(partition, self._settings, self.broker.topics.next_producer_id)

    def after(self, entry: Entry[TransactionShard], step: Step) -> None:
        """Write the markers of transactions whose outcome is settled, and close those transactions."""
        if not isinstance(step, TransactionStep):
            return
        for markers in step.markers:
            self._end(entry, markers)

    def _end(self, entry: Entry[TransactionShard], markers: Markers) -> None:
        """Write a transaction's markers, and note those that are safe: one that was noted is never written again."""
        due = entry.shard.pending_markers(markers)
        written: list[TopicPartition] = []
        left = 1 + len(due)

        def done(place: TopicPartition | None = None) -> None:
            nonlocal left
            if place is not None:
                written.append(place)
            left -= 1
            if not left:
                # Meanwhile others may have noted the markers, and the next transaction may have begun.
                still = set(entry.shard.pending_markers(markers))
                noted = [place for place in written if place in still]
                self.perform(entry, entry.shard.markers_written(markers.transactional_id, noted, self.broker.now()))

        for place in due:
            self._write(markers, place, done)
        done()

    def _write(self, markers: Markers, place: TopicPartition, done: Callable[[TopicPartition | None], None]) -> None:
        """Write a marker; `done` gets its place, or None if it has to be written again."""
        partition = self.broker.topics.partition(*place)
        if partition is None:
            done(place)  # the topic is gone, and what was written to it
            return
        try:
            self.broker.end_transaction(
                partition,
                markers.producer_id,
                markers.producer_epoch,
                commit=markers.commit,
                coordinator_epoch=markers.coordinator_epoch,
                transaction_version=markers.transaction_version,
                now=self.broker.now(),
                safe=lambda: done(place),
                failed=lambda error: done(None),
            )
        except KafkaError as error:
            log.error("the end of %s's transaction can't be written to %s: %s", markers.transactional_id, place, error)
            done(None if error.code is ErrorCode.KAFKA_STORAGE_ERROR else place)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partition: Partition,
        *,
        add: bool,
        then: Callable[[ErrorCode], None],
    ) -> None:
        """See to it that a partition takes part in a producer's transaction before it is written to (KIP-890).

        Args:
            transactional_id, producer: who writes.
            partition: where.
            add: whether writing makes the partition take part; else that has to be so already.
            then: gets the error, or NONE.
        """
        try:
            entry = self.entry(transactional_id)
        except KafkaError as error:
            then(error.code)
            return
        place = TopicPartition(partition.topic.name, partition.index)

        def found(errors: PartitionErrors) -> None:
            then(errors[place])

        self.perform(
            entry,
            entry.shard.verify_or_add(transactional_id, producer, [place], add=add, now=self.broker.now(), reply=found),
        )

    def abort_timed_out(self) -> None:
        """Abort transactions that take longer than their producers said."""
        now = self.broker.now()
        self.each(lambda shard: shard.abort_timed_out(now))

    def expire(self) -> None:
        """Forget transactional ids that nobody uses."""
        now = self.broker.now()
        self.each(lambda shard: shard.expire(now))
