from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Raw

from .face import Message

DEADLINE = 30.0


class Librdkafka:
    name = "librdkafka"
    writes_timestamps = True
    writes_bare_records = True

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, compression: str = "none", **settings: Any
    ) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": compression} | settings
        )
        errors: list[KafkaError] = []
        # The first on its own, or Apache Kafka may lose it: see Feeder.
        for part in (messages[:1], messages[1:]):
            for message in part:
                producer.produce(
                    topic,
                    message.value,
                    message.key,
                    partition=0,
                    headers=list(message.headers),
                    timestamp=message.timestamp or 0,
                    on_delivery=lambda error, _: errors.append(error) if error else None,
                )
            assert producer.flush(DEADLINE) == 0
        if errors:
            raise KafkaException(errors[0])

    def consume(self, bootstrap: str, topic: str, *, committed: bool = False) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = []
        try:
            while True:
                raw = consumer.poll(DEADLINE)
                assert raw is not None, "nothing to read, and no end either"
                error = raw.error()
                if error is None:
                    found.append(read(raw))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()

    @contextmanager
    def transactional(self, bootstrap: str, transactional_id: str) -> Iterator[LibrdkafkaTransactions]:
        yield LibrdkafkaTransactions(bootstrap, transactional_id)

    def too_large(self, error: Exception) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def read(raw: Raw) -> Message:
    return Message(raw.value(), raw.key(), tuple(raw.headers() or ()), raw.timestamp()[1], raw.offset())


class FencedError(Exception):
    """librdkafka's fatal error _FENCED."""


class LibrdkafkaTransactions:
    fencing = FencedError

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self.bootstrap = bootstrap
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.producer.init_transactions(DEADLINE)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        errors: list[KafkaError] = []
        with self.fencing_told():
            self.producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: errors.append(error) if error else None
            )
            assert self.producer.flush(DEADLINE) == 0
            if errors:
                raise KafkaException(errors[0])

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        self.producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], metadata, DEADLINE)
        consumer.close()

    def commit(self) -> None:
        with self.fencing_told():
            self.producer.commit_transaction(DEADLINE)

    def abort(self) -> None:
        self.producer.abort_transaction(DEADLINE)

    @contextmanager
    def fencing_told(self) -> Iterator[None]:
        try:
            yield
        except (KafkaException, SystemError) as raised:
            # Delivery reports may still be called when the fatal error is raised already: Python complains then.
            error = raised if isinstance(raised, KafkaException) else raised.__cause__
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError._FENCED:
                assert error.args[0].fatal()
                raise FencedError(str(error)) from error
            raise
