"""Reads a topic as a member of a group and writes each record to another, offsets and outputs in one transaction."""

from __future__ import annotations

from events import Terminated, options, say
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

wanted = options()
terminated = Terminated()
owned: list[int] = []
producer = KafkaProducer(
    bootstrap_servers=wanted.bootstrap,
    transactional_id=wanted.transactional_id,
    transaction_timeout_ms=30_000,
    reconnect_backoff_max_ms=200,
)
consumer = KafkaConsumer(
    wanted.topic,
    bootstrap_servers=wanted.bootstrap,
    group_id=wanted.group,
    session_timeout_ms=wanted.session_timeout,
    heartbeat_interval_ms=300,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    isolation_level="read_committed",
    fetch_max_wait_ms=50,
    reconnect_backoff_max_ms=200,
)


def transfer(found: dict[TopicPartition, list]) -> None:
    """All or nothing: where the transaction fails, back to what is committed."""
    offsets = {partition: records[-1].offset + 1 for partition, records in found.items()}
    try:
        producer.begin_transaction()
        for partition, records in found.items():
            for record in records:
                producer.send(wanted.target, record.value, partition=partition.partition)
        producer.send_offsets_to_transaction(
            {partition: OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()},
            consumer.group_metadata(),
        )
        producer.commit_transaction()
        say("committed", offsets={p.partition: offset for p, offset in offsets.items()})
    except ProducerFencedError:
        raise
    except KafkaError as error:
        say("aborted", error=type(error).__name__)
        producer.abort_transaction()
        for partition in consumer.assignment():
            consumer.seek(partition, consumer.committed(partition) or 0)


producer.init_transactions()
while not terminated:
    try:
        found = consumer.poll(timeout_ms=1000, max_records=20)  # long enough to join in, as in kafka_python_member
    except KafkaConnectionError:  # the server is away, which this client tells now and then instead of trying again
        continue
    if (now := sorted(p.partition for p in consumer.assignment())) != owned:
        owned = now
        say("owns", partitions=owned)
    if found:
        transfer(found)
consumer.close()
producer.close()
say("closed")
