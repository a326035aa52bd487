"""The transaction coordinator: its shards in `__transaction_state`, and the markers that end transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kohort.broker.config.component_settings import transaction_settings
from kohort.broker.coordinator_runtime import CoordinatorEnvironment, CoordinatorRuntime, Entry
from kohort.broker.periodic_tasks import PeriodicTask
from kohort.broker.topics import Partition
from kohort.broker.transaction_markers import TransactionMarkers
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

log = logging.getLogger("kohort.broker.transaction_coordinator")


class TransactionCoordinator(CoordinatorRuntime[TransactionShard]):
    def __init__(self, environment: CoordinatorEnvironment, markers: TransactionMarkers) -> None:
        config = environment.config.current
        super().__init__(
            environment,
            TRANSACTION_TOPIC,
            config.int("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
            },
        )
        self._settings = transaction_settings(config)
        self._markers = markers

    def make(self, partition: int) -> TransactionShard:
        return TransactionShard(partition, self._settings, self.environment.topics.next_producer_id)

    def after(self, entry: Entry[TransactionShard], step: Step) -> None:
        """Writes the markers of transactions that are prepared to commit or abort, and completes them."""
        if not isinstance(step, TransactionStep):
            return
        for markers in step.markers:
            self._write_markers(entry, markers)

    def _write_markers(self, entry: Entry[TransactionShard], markers: Markers) -> None:
        """Writes a transaction's markers, and records those that are safe: a recorded one is never written again."""
        unmarked = entry.shard.pending_markers(markers)
        written: list[TopicPartition] = []
        pending = 1 + len(unmarked)

        def done(partition: TopicPartition | None = None) -> None:
            nonlocal pending
            if partition is not None:
                written.append(partition)
            pending -= 1
            if not pending:
                # In the meantime others may have recorded the markers, and the next transaction may have begun.
                still_unmarked = set(entry.shard.pending_markers(markers))
                marked = [partition for partition in written if partition in still_unmarked]
                self.perform(entry, entry.shard.markers_written(markers.transactional_id, marked, self._clock()))

        for partition in unmarked:
            self._write_marker(markers, partition, done)
        done()

    def _write_marker(
        self, markers: Markers, place: TopicPartition, done: Callable[[TopicPartition | None], None]
    ) -> None:
        """Writes a marker; `done` gets its partition, or None if the marker has to be written again."""
        partition = self.environment.topics.partition(*place)
        if partition is None:
            done(place)  # the topic was deleted, with its records
            return
        try:
            self._markers.write(
                partition,
                markers.producer_id,
                markers.producer_epoch,
                commit=markers.commit,
                coordinator_epoch=markers.coordinator_epoch,
                transaction_version=markers.transaction_version,
                now=self._clock(),
                safe=lambda: done(place),
                failed=lambda error: done(None),
            )
        except KafkaError as error:
            log.error(
                "the marker of %s's transaction can't be written to %s: %s", markers.transactional_id, place, error
            )
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
        """Verifies that a partition takes part in a producer's transaction, before it is written to (KIP-890).

        Args:
            add: whether to add the partition to the transaction; otherwise it must have been added.
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
            entry.shard.verify_or_add(transactional_id, producer, [place], add=add, now=self._clock(), reply=found),
        )

    def periodic_tasks(self) -> Sequence[PeriodicTask]:
        return (
            PeriodicTask(self.abort_timed_out, "transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            PeriodicTask(self.expire, "transaction.remove.expired.transaction.cleanup.interval.ms"),
        )

    async def abort_timed_out(self) -> None:
        """Aborts transactions by their transaction.timeout.ms."""
        now = self._clock()
        self.each(lambda shard: shard.abort_timed_out(now))

    async def expire(self) -> None:
        """Expires transactional ids by transactional.id.expiration.ms."""
        now = self._clock()
        self.each(lambda shard: shard.expire(now))
