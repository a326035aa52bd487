"""A share consumer (KIP-932): members of a share group read the same partitions, as from a queue.

A broker locks records for one member, counts their deliveries, and hands out again what isn't acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Final

from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.consuming.decoding import Deserializer
from kohort.client.errors import ClientError, ClosedError, ConfigError, SharedRecordError
from kohort.client.lifecycle import Lifecycle
from kohort.client.sharing.acknowledgements import Acknowledgement, AcknowledgeType, OffsetSpan
from kohort.client.sharing.running_share_consumer import OnAcknowledged, RunningShareConsumer
from kohort.client.sharing.settings import ShareSettings
from kohort.client.sharing.shared_partitions import AcknowledgementResult
from kohort.client.sharing.spans import spans_of_batch, spans_of_records
from kohort.client.types import ShareRecord, TopicPartition
from kohort.extras import ARROW, require
from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AcknowledgeType", "Acknowledgement", "AcknowledgementResult", "OffsetSpan", "ShareConsumer", "SharedRecordError",
]  # fmt: skip


_NEW_TOPIC_MS: Final = 2_000


class ShareConsumer(Lifecycle):
    """Reads records that a broker has locked for it, and acknowledges them.

        async with ShareConsumer("localhost:9092", group_id="billing") as consumer:
            consumer.subscribe("orders")
            async for record in consumer:
                print(record.delivery_count, record.value)

    One task at a time reads from it; any task may acknowledge. Settings are Kafka's, with underscores; times are in ms,
    sizes in bytes.

    Args:
        servers: addresses ("host:port,…") or a `ClientConfig`.
        group_id: the share group.
        share_acknowledgement_mode: "implicit": a record (or list, or batch) is accepted when the loop asks for the
            next, unless it was acknowledged otherwise before; "explicit": only what is acknowledged counts.
        share_acquire_mode: "batch_optimized": brokers lock whole batches, also ahead of the loop; "record_limit":
            never more than `max_poll_records`, and none ahead (KIP-1206).
        max_poll_records: about how many records a broker locks at a time.
        fetch_min_bytes, fetch_max_wait_ms: a broker responds when it has so much, or after so long.
        fetch_max_bytes: the size limit of a response; a single batch of records comes even if it is larger.
        lock_renewal_ms: how long locks are renewed in the background while the user works on records (KIP-1222, where
            the brokers have that), counted from when the user last asked for one; 0: never.
        acknowledge_linger_ms: how long acknowledgements may wait for others, if no fetch takes them along.
        check_crcs: whether to check the checksums of fetched batches.
        key_deserializer, value_deserializer: called with bytes; null stays None. `SharedRecordError` says where one
            fails.
        on_acknowledged: called in the event loop with each range of offsets, once, when a broker has answered or never
            will; also for records that were locked ahead and released.
        default_api_timeout_ms: how long `commit` may take, and acknowledgements are tried.

    Raises:
        ConfigError: invalid settings.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        group_id: str,
        share_acknowledgement_mode: str = "implicit",
        share_acquire_mode: str = "batch_optimized",
        max_poll_records: int = 500,
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 50 * 1024 * 1024,
        lock_renewal_ms: int = 300_000,
        acknowledge_linger_ms: int = 100,
        check_crcs: bool = True,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        default_api_timeout_ms: int = 60_000,
    ) -> None:
        self._cluster = Cluster(servers)
        self._settings = ShareSettings(
            group_id=group_id,
            share_acknowledgement_mode=share_acknowledgement_mode,
            share_acquire_mode=share_acquire_mode,
            max_poll_records=max_poll_records,
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_max_bytes=fetch_max_bytes,
            lock_renewal_ms=lock_renewal_ms,
            acknowledge_linger_ms=acknowledge_linger_ms,
            check_crcs=check_crcs,
            default_api_timeout_ms=default_api_timeout_ms,
        )
        self._deserializers = key_deserializer, value_deserializer
        self._on_acknowledged = on_acknowledged
        self._started: RunningShareConsumer | None = None
        self._closed = False

    async def start(self) -> None:
        """Finds the cluster: tries one server after the other, in rounds, until one answers.

        Raises:
            NoBrokerError: none did within `bootstrap_timeout_ms`; without that setting it tries for ever.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
        """
        if self._closed:
            raise ClosedError("the consumer is closed; make another one")
        if self._started is None:
            await self._cluster.start()
            self._started = RunningShareConsumer(
                self._cluster, self._settings, *self._deserializers, self._on_acknowledged
            )

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        """Closes it. In the implicit mode, the record in hands is accepted, unless an exception ends the block."""
        if kind is None and self._started is not None and not self._closed:
            self._started.delivery.sync(all_given=True)
        await self.close()

    async def close(self, timeout_ms: int = 30_000) -> None:
        """Sends acknowledgements, leaves the group, and stops. Ends within `timeout_ms`.

        Brokers release what isn't acknowledged by then: other members get it at once. In the implicit mode, that is the
        record in hands, and what was locked ahead. Loops over the consumer end at their next step. May be called twice.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._started is not None:
                await self._started.close(timeout_ms)
        finally:
            await self._cluster.close()

    # What to read.

    def subscribe(self, *topics: str) -> None:
        """Reads topics with the other members of the group; replaces an earlier subscription.

        Raises:
            ConfigError: no topics.
        """
        if not topics:
            raise ConfigError("subscribe to what? Name topics; unsubscribe ends a subscription")
        self._running().subscribe(topics)

    def unsubscribe(self) -> None:
        """Leaves the group. What was given can still be acknowledged."""
        self._running().subscribe(())

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._running().membership.topics

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now; other members may have the same."""
        return {each.at for each in self._running().partitions.by_key.values() if each.assigned}

    async def exists(self, topic: str) -> bool:
        """Whether there's such a topic; one that is just being created is waited for.

        Raises:
            KafkaError: it may not be read.
        """
        self._running()
        try:
            await self._cluster.topic(topic, timeout_ms=_NEW_TOPIC_MS)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False
        return True

    @property
    def member_id(self) -> str:
        """Its id in the group."""
        return self._running().membership.member_id

    # Reading.

    def __aiter__(self) -> AsyncIterator[ShareRecord]:
        """Record by record; ends when the consumer is closed.

        Breaking out of the loop loses nothing: the next loop goes on after the last record that was given.

        Raises:
            SharedRecordError: a record can't be read; the loop may go on.
            ClientError: another task is reading, or there's nothing to read.
            KafkaError: a broker refuses.
        """
        return self._running().delivery.records()

    def batches(self, max_records: int = 1_000_000) -> AsyncIterator[pa.RecordBatch]:
        """Arrow batch by Arrow batch, each of one partition, with no Python object for a record.

        The columns are `topic` (dictionary-encoded), `partition` (int32), those of
        `kohort.protocol.records.columns.RECORD_SCHEMA`, and `delivery_count` (int16), which is the same in all rows;
        deserializers aren't called. Raises as `__aiter__`.
        """
        require("arrow", "consuming Arrow batches", ARROW)
        return self._running().delivery.batches(max_records)

    async def poll(self, max_records: int | None = None, timeout_ms: float = 1_000) -> list[ShareRecord]:
        """Returns up to so many records (`max_poll_records` by default), as soon as there are some.

        There are none after the timeout. Raises as `__aiter__`.
        """
        return await self._running().delivery.poll(max_records or self._settings.max_poll_records, timeout_ms)

    async def poll_batch(self, timeout_ms: float = 1_000, max_records: int = 1_000_000) -> pa.RecordBatch | None:
        """An Arrow batch as of `batches`, or None if none comes in time."""
        require("arrow", "consuming Arrow batches", ARROW)
        return await self._running().delivery.poll_batch(max_records, timeout_ms)

    def buffered(self) -> bool:
        """Whether records are locked for it that it hasn't given yet: the next call gives some at once."""
        return self._running().delivery.buffered

    def renews_locks(self) -> bool | None:
        """Whether the brokers that it reads from renew locks, as of Apache Kafka 4.2; None: it has read from none."""
        return self._running().renews_locks

    # Acknowledging.

    def acknowledge(
        self,
        what: ShareRecord | pa.RecordBatch | Iterable[ShareRecord] | tuple[TopicPartition, Iterable[OffsetSpan]],
        type: AcknowledgeType = AcknowledgeType.ACCEPT,  # noqa: A002 (the protocol's word)
    ) -> None:
        """Says what became of records: sent soon, and reported to `on_acknowledged`.

        Those that aren't locked for this consumer (any more) are reported as failed: another member may have got them.

        Args:
            what: a record, several, an Arrow batch or a part of one (it needs its columns `topic`, `partition` and
                `offset`), or a partition with ranges of offsets.
            type: `RENEW` locks it for another while, and may be repeated; the others are final.
        """
        running, kind = self._running(), AcknowledgeType(type)
        if isinstance(what, ShareRecord):
            running.acknowledge(
                TopicPartition(what.topic, what.partition), (OffsetSpan(what.offset, what.offset),), kind
            )
        elif isinstance(what, tuple):
            at, spans = what
            running.acknowledge(TopicPartition(*at), [OffsetSpan(*span) for span in spans], kind)
        else:
            found = spans_of_batch(what) if hasattr(what, "schema") else spans_of_records(what)
            for at, ranges in found.items():
                running.acknowledge(at, ranges, kind)

    async def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, Exception | None]:
        """Sends acknowledgements now, and waits for the answers. In the implicit mode, all that was given is accepted.

        Returns:
            Partitions with acknowledgements, with the error if some don't count of those since the latest commit.

        Raises:
            RequestTimeoutError: not all was answered in time (`default_api_timeout_ms`); it goes on in the background.
        """
        return await self._running().commit(self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def _running(self) -> RunningShareConsumer:
        if self._closed:
            raise ClosedError("the consumer is closed")
        if self._started is None:
            raise ClientError("the consumer isn't started: use `async with`, or call start()")
        return self._started
