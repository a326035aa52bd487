"""The producer: records and Arrow tables into topics, in batches, exactly once, in transactions if wanted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_loaded
from kohort.client.config import Servers
from kohort.client.errors import ClientError, ClosedError, NotDeliveredError
from kohort.client.lifecycle import Lifecycle
from kohort.client.producing.batch import NO_HEADERS, RECORD_OVERHEAD, PlainHeaders, ProducerBatch
from kohort.client.producing.delivery import Delivery, TableDelivery, without_traceback
from kohort.client.producing.intake import Intake
from kohort.client.producing.settings import Partitioner, ProducerSettings
from kohort.client.producing.transaction_manager import State, TransactionManager
from kohort.client.time_limit import time_limit
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.extras import ARROW, require
from kohort.protocol.errors import KafkaError
from kohort.protocol.records.batch import HEADER_SIZE

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Producer"]


class Producer(Lifecycle):
    """Sends records to topics.

        async with Producer("localhost:9092") as producer:
            delivery = await producer.send("greetings", b"hello", key=b"world")
            print(await delivery)  # RecordMetadata(topic='greetings', partition=0, offset=0, ...)

    `send` puts the record into a batch and returns a `Delivery`, to be awaited for the outcome, or not: `flush` and
    `close` raise for all failures that nobody looked at. Names, defaults and meanings are Kafka's where not said.

    Args:
        servers: "HOST:PORT,…" or a `ClientConfig`.
        acks: which replicas must have a record before it counts as delivered: "all" in-sync replicas, 1 (the leader),
            0 (none: then its offset isn't known, either).
        enable_idempotence: nothing is written twice, and order holds, whatever happens to connections and brokers.
        transactional_id: for transactions: an id of this producer alone, the same after restarts.
        transaction_timeout_ms: after which the coordinator aborts a transaction.
        compression_type: none, gzip, snappy, lz4 or zstd.
        compression_level: of gzip (1 to 9) or zstd (1 to 22).
        batch_size: bytes of a batch before compression. Larger than Kafka's 16,384: a batch costs some 0.3 ms of
            Python whatever is in it.
        linger_ms: how long a batch waits for more.
        max_request_size: bytes of a request and of a record at most, before compression.
        buffer_memory: bytes of records that aren't delivered yet; beyond that, `send` waits.
        max_block_ms: how long methods wait for memory, a topic's metadata, or a coordinator.
        delivery_timeout_ms: how long a record may take from `send` to its outcome.
        max_in_flight_requests_per_connection: requests to a broker without a response; 5 at most if idempotent.
        partitioner: for records without an explicit partition: "murmur2" (keys as in Kafka; others stick to a partition
            for a batch), "murmur2_random" (others anywhere), "consistent_random" (librdkafka's own), or a callable
            (topic, key, number of partitions) -> partition.
        key_serializer, value_serializer: make bytes of keys and values; by default they are bytes.
        allow_auto_create_topics: whether the broker may create a topic that isn't there, as Kafka's producers let it.

    Raises:
        ConfigError: invalid settings.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        acks: Literal["all", 0, 1] | str | int = "all",
        enable_idempotence: bool = True,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        compression_type: str = "none",
        compression_level: int | None = None,
        batch_size: int = 262_144,
        linger_ms: float = 5,
        max_request_size: int = 1_048_576,
        buffer_memory: int = 33_554_432,
        max_block_ms: int = 60_000,
        delivery_timeout_ms: int = 120_000,
        max_in_flight_requests_per_connection: int = 5,
        partitioner: str | Partitioner = "murmur2",
        key_serializer: Callable[[Any], bytes | None] | None = None,
        value_serializer: Callable[[Any], bytes | None] | None = None,
        allow_auto_create_topics: bool = True,
    ) -> None:
        self._settings = settings = ProducerSettings(
            acks=acks, enable_idempotence=enable_idempotence, transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms, compression_type=compression_type,
            compression_level=compression_level, batch_size=batch_size, linger_ms=linger_ms,
            max_request_size=max_request_size, buffer_memory=buffer_memory, max_block_ms=max_block_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            max_in_flight_requests_per_connection=max_in_flight_requests_per_connection, partitioner=partitioner,
            key_serializer=key_serializer, value_serializer=value_serializer,
            allow_auto_create_topics=allow_auto_create_topics,
        )  # fmt: skip
        self._cluster = Cluster(servers)
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._manager = TransactionManager(transactional_id)
        self._intake = Intake(self._cluster, settings, self._manager)
        self._largest_batch, self._memory = settings.largest_batch, settings.buffer_memory
        self._started = False
        self._closed = False

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if error is None:
            await self.close()
            return
        # The first error counts.
        with contextlib.suppress(NotDeliveredError):
            await self.close()

    async def start(self) -> None:
        """Finds the cluster, and gets a producer id; with a transactional id, fences its last producer.

        Raises:
            NoBrokerError: no broker answered within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
            FencedError: another producer with this transactional id is starting, too.
            KafkaError: the broker refuses this producer.
            RequestTimeoutError: no producer id within `max_block_ms`.
        """
        if self._started:
            return
        if self._closed:
            raise ClosedError("the producer is closed; make a new one")
        await self._cluster.start()
        self._started = True
        self._intake.start()
        try:
            await self._intake.transactions.initialize()
        except BaseException:
            await self.close(timeout_ms=0)
            raise

    async def close(self, *, timeout_ms: float = 30_000) -> None:
        """Delivers all records, and ends, soon after `timeout_ms` at the latest. An open transaction is aborted.

        Raises:
            NotDeliveredError: how many records of which topics weren't delivered; their deliveries fail.
        """
        if self._closed:
            return
        self._closed = True
        self._manager.close()
        try:
            if self._started:
                async with time_limit(timeout_ms / 1000):
                    await self._finish()
        except TimeoutError:
            pass
        finally:
            await self._intake.close()
            await self._cluster.close()
        self._intake.raise_losses()

    async def _finish(self) -> None:
        if self._manager.state in (State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR, State.ABORTING):
            # If this fails, the coordinator aborts after the transaction's timeout.
            with contextlib.suppress(ClientError, KafkaError):
                await self.abort_transaction()
        else:
            await self._intake.deliver_all()

    # Sending

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: PlainHeaders = NO_HEADERS,
    ) -> Delivery:
        """Takes a record, to be sent soon. It waits only while memory is full, or for a topic's metadata.

        Cancelled, the record isn't taken.

        Args:
            topic: its topic.
            value, key: bytes or None; or what the serializers take.
            partition: its partition; the partitioner's choice by default.
            timestamp_ms: ms since 1970; now by default.
            headers: names and values.

        Raises:
            KafkaError: the topic doesn't exist within `max_block_ms` (UNKNOWN_TOPIC_OR_PARTITION), or can't be written
                (TOPIC_AUTHORIZATION_FAILED); the record is too large (MESSAGE_TOO_LARGE).
            RequestTimeoutError: there was no memory for it within `max_block_ms`.
            TransactionAbortableError: the transaction failed: abort it.
            FencedError: another producer has the transactional id.
            TypeError, ValueError: no bytes, or a partition that doesn't exist.
            RuntimeError: outside a transaction, or not started.
            ClosedError: it is closed.
        """
        if key is not None:
            if self._key_serializer is not None:
                key = self._key_serializer(key)
            if key.__class__ is not bytes:
                key = _bytes("key", key)
        if value is not None:
            if self._value_serializer is not None:
                value = self._value_serializer(value)
            if value.__class__ is not bytes:
                value = _bytes("value", value)
        size = RECORD_OVERHEAD + len(value or b"") + len(key or b"")
        if headers:
            size += _size_of(headers)
        intake, accumulator, largest = self._intake, self._intake.accumulator, self._largest_batch
        deadline: float | None = None
        while True:
            if self._manager.send_error is not None:
                raise without_traceback(self._manager.send_error)
            routes = intake.routes.get(topic)
            if routes is None:
                await intake.find_topic(topic)
                continue
            if partition is None:
                queue = routes.route(key, size)
            elif 0 <= partition < len(routes.queues):
                queue = routes.queues[partition]
            else:
                await intake.find_partition(routes, partition)
                continue
            if size >= largest:
                intake.check_size(key, value, headers)
            batch = queue.open
            if accumulator.buffered + size + HEADER_SIZE <= self._memory:
                if batch is None:
                    batch = intake.open_batch(queue)
                    break
                if batch.size + size <= largest:
                    break
            deadline = await intake.make_room(queue, size, deadline)
        index = batch.count
        batch.keys.append(key)
        batch.values.append(value)
        batch.timestamps.append(int(time.time() * 1000) if timestamp_ms is None else timestamp_ms)
        if key is not None:
            batch.keyed = True
        if headers or batch.headers is not None:
            batch.add_headers(headers)
        batch.count = index + 1
        batch.size += size
        accumulator.buffered += size
        return Delivery(batch, index)

    async def send_table(
        self, topic: str, table: pa.Table | pa.RecordBatch, *, partition: int | None = None
    ) -> TableDelivery:
        """Takes a table's rows, to be sent soon: Arrow columns go straight into batches, no Python object a record.

        It waits while memory is full. Rows of a partition keep their order; a piece of a few MiB is taken at a time,
        so a table may be larger than `buffer_memory`. Cancelled, part of the table may be taken.

        Args:
            topic: its topic.
            table: any of the columns key, value (bytes or strings), timestamp (a timestamp, or integers in ms),
                headers (lists of (key, value)), and partition (integers; null for what the key says).
            partition: for all rows.

        Raises:
            ValueError: other columns or types, or a row over `max_request_size`: nothing is taken; or a partition that
                doesn't exist.
            others: as `send`.
        """
        require("arrow", "sending Arrow tables", ARROW)
        from kohort.client.producing.tables import (
            check_row_sizes,
            check_table,
            encode_table,
            is_small,
            pieces_of,
            spread_of,
        )

        intake, accumulator, memory = self._intake, self._intake.accumulator, self._memory
        taken: list[ProducerBatch] = []
        table = check_table(table)
        if not is_small(table, self._settings):
            await columns_loaded()
            check_row_sizes(table, self._settings)
        routes = intake.routes.get(topic) or await intake.find_topic(topic)
        for piece in pieces_of(table, spread_of(table, routes, partition)):
            if partition is not None and not 0 <= partition < len(routes.queues):
                await intake.find_partition(routes, partition)
            for queue, data, count in encode_table(piece, routes, partition, self._settings, int(time.time() * 1000)):
                deadline: float | None = None
                while accumulator.buffered and accumulator.buffered + len(data) + HEADER_SIZE > memory:
                    deadline = await intake.make_room(queue, len(data), deadline)
                if self._manager.send_error is not None:
                    raise without_traceback(self._manager.send_error)
                batch = accumulator.encoded_batch(queue.target, data, count, intake.sender.now())
                self._manager.add(queue.target)
                accumulator.add_encoded(queue, batch)
                taken.append(batch)
                intake.sender.wake(queue)
            await asyncio.sleep(0)
        return TableDelivery(taken)

    async def flush(self, *, timeout_ms: float | None = None) -> None:
        """Waits until all records sent before are delivered; batches don't linger meanwhile.

        Raises:
            NotDeliveredError: records have failed since the last call, and nobody has looked at their errors; or they
                are still on their way after `timeout_ms`. It says how many of which topics.
        """
        try:
            async with time_limit(None if timeout_ms is None else timeout_ms / 1000):
                await self._intake.deliver_all()
        except TimeoutError:
            why = f"they are still on their way after timeout_ms={timeout_ms:g}"
            raise NotDeliveredError(self._intake.accumulator.undelivered(), why) from None
        self._intake.raise_losses()

    # Transactions

    async def begin_transaction(self) -> None:
        """Opens a transaction: it has all records sent from now on.

        Raises:
            RuntimeError: one is open, or the producer has no transactional id.
            FencedError: another producer has the transactional id.
        """
        self._manager.begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata
    ) -> None:
        """Commits a group's offsets in the transaction: they count when it is committed.

        Args:
            offsets: of the next record to read, by partition.
            group: the member: `consumer.group_metadata()`.

        Raises:
            CommitFailedError: the group has rebalanced; abort the transaction.
            TransactionAbortableError: the transaction failed otherwise; abort it.
            FencedError: another producer has the transactional id.
            KafkaError: a fatal error.
            RequestTimeoutError: no answer within `max_block_ms`; call it again, or abort.
            RuntimeError: no transaction is open.
        """
        if self._manager.send_error is not None:
            raise without_traceback(self._manager.send_error)
        if self._manager.transactional_id is None:
            raise RuntimeError("send_offsets_to_transaction(): the producer has no transactional_id")
        if not offsets:
            return
        commits = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        try:
            await self._intake.transactions.send_offsets(commits, group)
        finally:
            self._drop_if_failed()

    async def commit_transaction(self) -> None:
        """Delivers the transaction's records, and commits it. If it was cancelled, call it again.

        Raises:
            TransactionAbortableError: a record wasn't delivered, or something else failed: abort the transaction.
            FencedError: another producer has the transactional id.
            KafkaError: a fatal error.
            RequestTimeoutError: no answer within `max_block_ms`; call it again to find out.
            RuntimeError: no transaction is open.
        """
        manager = self._manager
        manager.commit()
        if manager.state is State.COMMITTING:
            await self._intake.deliver_all()
            if manager.error is not None:
                raise without_traceback(manager.send_error or manager.error)
            manager.end_txn_sent()
        try:
            await self._intake.transactions.end(commit=True)
        finally:
            self._drop_if_failed()
        self._intake.completer.take_losses()

    async def abort_transaction(self) -> None:
        """Aborts the transaction: its records fail, or nobody reads them. If it was cancelled, call it again.

        Raises:
            FencedError: another producer has the transactional id.
            KafkaError: a fatal error.
            RequestTimeoutError: no answer within `max_block_ms`; call it again.
            RuntimeError: no transaction is open, or it may be committed already.
        """
        self._manager.abort()
        self._intake.completer.drop(ClientError("the transaction that the record was sent in was aborted"))
        await self._intake.deliver_all()
        await (
            self._intake.sender.coordinator_requests_done()
        )  # a partition may be being added, which must be aborted, too
        await self._intake.transactions.end(commit=False)
        self._intake.completer.take_losses()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction that is committed at the end, and aborted if anything is raised before. Raises as these do."""
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            if self._manager.state in (State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR):
                await self.abort_transaction()
            raise

    def _drop_if_failed(self) -> None:
        if self._manager.failed and self._manager.error is not None:
            self._intake.completer.drop(self._manager.error)


def _bytes(name: str, value: object) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"the {name} is {type(value).__name__}, not bytes: encode it, or give {name}_serializer")


def _size_of(headers: PlainHeaders) -> int:
    """Returns the approximate bytes of headers.

    Raises:
        TypeError: they aren't pairs of str and bytes.
    """
    size = 0
    for name, value in headers:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise TypeError(f"the header {name!r:.80} is {value!r:.80}; a name is str, a value bytes or None")
        size += 4 + len(name) + len(value or b"")
    return size
