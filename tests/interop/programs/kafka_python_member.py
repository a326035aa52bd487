"""A member of a group: reads up to ten records at a time and commits them."""

from __future__ import annotations

from events import Terminated, options, say
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

STRATEGIES = {
    "range": RangePartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
wanted = options()
terminated = Terminated()
owned: list[int] = []


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        say("revoked", partitions=[p.partition for p in revoked])

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass


consumer = KafkaConsumer(
    bootstrap_servers=wanted.bootstrap,
    group_id=wanted.group,
    group_instance_id=wanted.instance,
    partition_assignment_strategy=[STRATEGIES[wanted.strategy]],
    session_timeout_ms=wanted.session_timeout,
    heartbeat_interval_ms=300,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    fetch_max_wait_ms=50,
    reconnect_backoff_max_ms=200,
)
consumer.subscribe([wanted.topic], listener=Listener())
while not terminated:
    try:
        # Long enough to join in: kafka-python 3.0.12 may lose a join that takes more than one call.
        found = consumer.poll(timeout_ms=1000, max_records=10)
    except KafkaError as error:
        say("error", error=type(error).__name__)
        continue
    if (now := sorted(p.partition for p in consumer.assignment())) != owned:
        owned = now
        say("owns", partitions=owned)
    for records in found.values():
        for record in records:
            say("read", partition=record.partition, offset=record.offset)
    if found:
        offsets = {partition: records[-1].offset + 1 for partition, records in found.items()}
        try:
            consumer.commit({partition: OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()})
            say("committed", offsets={p.partition: offset for p, offset in offsets.items()})
        except KafkaError as error:
            say("commit failed", error=type(error).__name__)
consumer.close()
say("closed")
