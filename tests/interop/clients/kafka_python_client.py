from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import MessageSizeTooLargeError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from .face import Message

DEADLINE = 30


class KafkaPython:
    name = "kafka-python"
    writes_timestamps = True
    writes_bare_records = False

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, compression: str = "none", **settings: Any
    ) -> None:
        chosen = None if compression == "none" else compression
        with closing(KafkaProducer(bootstrap_servers=bootstrap, compression_type=chosen, **settings)) as producer:
            sent = [
                producer.send(topic, m.value, m.key, headers=list(m.headers), partition=0, timestamp_ms=m.timestamp)
                for m in messages
            ]
            for future in sent:
                future.get(DEADLINE)

    def consume(self, bootstrap: str, topic: str, *, committed: bool = False) -> list[Message]:
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False, fetch_max_wait_ms=10
        )
        partition = TopicPartition(topic, 0)
        with closing(consumer):
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            end = consumer.end_offsets([partition])[partition]
            found: list[Message] = []
            while consumer.position(partition) < end:
                raws = consumer.poll(timeout_ms=DEADLINE * 1000).get(partition, [])
                found += [Message(r.value, r.key, tuple(r.headers), r.timestamp, r.offset) for r in raws]
            return found

    @contextmanager
    def transactional(self, bootstrap: str, transactional_id: str) -> Iterator[KafkaPythonTransactions]:
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        try:
            producer.init_transactions()
            yield KafkaPythonTransactions(producer)
        finally:
            producer.close(timeout=1)

    def too_large(self, error: Exception) -> bool:
        return isinstance(error, MessageSizeTooLargeError)


class KafkaPythonTransactions:
    fencing = ProducerFencedError

    def __init__(self, producer: KafkaProducer) -> None:
        self.producer = producer

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self.producer.send(topic, value, partition=0).get(DEADLINE)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        self.producer.send_offsets_to_transaction(offsets, group)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()
