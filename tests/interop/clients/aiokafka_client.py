from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, ProducerFenced

from .face import Message


class Aiokafka:
    name = "aiokafka"
    writes_timestamps = True
    writes_bare_records = False

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, compression: str = "none", **settings: Any
    ) -> None:
        async def main() -> None:
            chosen = None if compression == "none" else compression
            async with AIOKafkaProducer(
                bootstrap_servers=bootstrap, compression_type=chosen, enable_idempotence=True, **settings
            ) as producer:
                sent = [await producer.send(topic, m.value, m.key, 0, m.timestamp, list(m.headers)) for m in messages]
                await asyncio.gather(*sent)

        asyncio.run(main())

    def consume(self, bootstrap: str, topic: str, *, committed: bool = False) -> list[Message]:
        return asyncio.run(self.read(bootstrap, topic, "read_committed" if committed else "read_uncommitted"))

    async def read(self, bootstrap: str, topic: str, isolation: str) -> list[Message]:
        partition = TopicPartition(topic, 0)
        found: list[Message] = []
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False, fetch_max_wait_ms=10
        ) as consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            end = (await consumer.end_offsets([partition]))[partition]
            while await consumer.position(partition) < end:
                raws = (await consumer.getmany(timeout_ms=100)).get(partition, [])
                found += [Message(r.value, r.key, tuple(r.headers), r.timestamp, r.offset) for r in raws]
        return found

    @contextmanager
    def transactional(self, bootstrap: str, transactional_id: str) -> Iterator[AiokafkaTransactions]:
        with asyncio.Runner() as runner:
            producer = runner.run(started(bootstrap, transactional_id))
            try:
                yield AiokafkaTransactions(runner, producer)
            finally:
                runner.run(producer.stop())

    def too_large(self, error: Exception) -> bool:
        return isinstance(error, MessageSizeTooLargeError)


async def started(bootstrap: str, transactional_id: str) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    await producer.start()
    return producer


class AiokafkaTransactions:
    fencing = ProducerFenced

    def __init__(self, runner: asyncio.Runner, producer: AIOKafkaProducer) -> None:
        self.runner, self.producer = runner, producer

    def begin(self) -> None:
        self.runner.run(self.producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self.runner.run(self.producer.send_and_wait(topic, value, partition=0))

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        self.runner.run(self.producer.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, group))

    def commit(self) -> None:
        self.runner.run(self.producer.commit_transaction())

    def abort(self) -> None:
        self.runner.run(self.producer.abort_transaction())
