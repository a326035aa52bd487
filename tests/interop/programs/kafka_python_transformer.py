"""Reads a topic as a member of a group and writes each record to another, offsets and outputs in one transaction.

kafka-python loses a request of a transaction if the connection to the coordinator fails just when it's about to send
it, and waits for its answer forever. So the producer of a transaction that takes too long is replaced by an heir.
"""

from __future__ import annotations

import signal

from events import Terminated, options, say
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

PATIENCE_S = 5

wanted = options()
terminated = Terminated()
owned: list[int] = []


class StuckError(Exception):
    """The transaction takes too long."""


def stuck(*_: object) -> None:
    raise StuckError


def new_producer() -> KafkaProducer:
    """One that may begin a transaction: those that others of its id have left open are over."""
    made = KafkaProducer(
        bootstrap_servers=wanted.bootstrap,
        transactional_id=wanted.transactional_id,
        transaction_timeout_ms=30_000,
        reconnect_backoff_max_ms=200,
    )
    made.init_transactions()
    return made


producer: KafkaProducer | None = new_producer()
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


def transfer(producer: KafkaProducer, found: dict[TopicPartition, list]) -> None:
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
        rewind()


def rewind() -> dict[int, int]:
    """Back to what is committed; returns that."""
    committed = {partition: consumer.committed(partition) for partition in consumer.assignment()}
    for partition, offset in committed.items():
        consumer.seek(partition, offset or 0)
    return {partition.partition: offset for partition, offset in committed.items() if offset}


signal.signal(signal.SIGALRM, stuck)
while not terminated:
    try:
        found = consumer.poll(timeout_ms=1000, max_records=20)  # long enough to join in, as in kafka_python_member
    except KafkaConnectionError:  # the server is away, which this client tells now and then instead of trying again
        continue
    if (now := sorted(p.partition for p in consumer.assignment())) != owned:
        owned = now
        say("owns", partitions=owned)
    signal.alarm(PATIENCE_S)
    try:
        if producer is None:
            producer = new_producer()
            if committed := rewind():  # by the producer before, perhaps, which couldn't say so
                say("committed", offsets=committed)
        elif found:
            transfer(producer, found)
    except StuckError:
        say("stuck")
        producer = None  # the old one is left to itself: it would wait when it is closed, too
    finally:
        signal.alarm(0)
consumer.close()
if producer is not None:
    producer.close()
say("closed")
