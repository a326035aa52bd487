"""A consumer: reads records of Kafka's topics, alone or as a member of a group.

It's the lightweight consumer: a coordinator connector, a list of fetchers, and the consumed partition info.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.consuming.commits import CommitCallback
from kohort.client.consuming.consumed_partitions import EARLIEST, LATEST
from kohort.client.consuming.decoding import Deserializer
from kohort.client.consuming.rebalance_handler import RebalanceCallback, RebalanceListeners
from kohort.client.consuming.running_consumer import RunningConsumer
from kohort.client.consuming.settings import ConsumerSettings, FetchSettings, ResetPolicy
from kohort.client.coordinator_connector import MembershipSettings, Subscription
from kohort.client.errors import ClientError, ClosedError, ConfigError
from kohort.client.lifecycle import Lifecycle
from kohort.client.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    Record,
    TopicPartition,
)
from kohort.extras import ARROW, require
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Consumer"]

Offset = int | OffsetAndMetadata


class Consumer(Lifecycle):
    """Reads records, and commits offsets.

        async with Consumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("orders")
            async for record in consumer:
                print(record.key, record.value)

    One task at a time reads from it; any task may call the other methods. Settings are Kafka's, with underscores;
    times are in ms, sizes in bytes.

    Args:
        servers: addresses ("host:port,…") or a `ClientConfig`.
        group_id: the group to be a member of, or to commit offsets for; None for neither.
        group_instance_id: makes it a static member, which may come back within the session timeout (KIP-345).
        group_protocol: "classic", or "consumer" (KIP-848), where the brokers have that.
        partition_assignment_strategy: of a classic group: "range", "roundrobin", "sticky", "cooperative-sticky"; the
            group takes the first one that all its members have.
        group_remote_assignor: of a consumer group: the coordinator's assignor; None for its own choice.
        auto_offset_reset: where to begin where nothing is committed, or what is committed is gone: "latest",
            "earliest", "none" (raise `NoOffsetError`) or "by_duration:PT1H": so long ago.
        enable_auto_commit, auto_commit_interval_ms: whether consumed offsets are committed automatically, how often.
            A record is consumed when the loop asks for the next one; on `close`, all the given records are.
        isolation_level: "read_uncommitted", or "read_committed" to get no record of a transaction that is open or was
            aborted.
        fetch_min_bytes, fetch_max_wait_ms: a broker responds when it has so much, or after so long.
        fetch_max_bytes, max_partition_fetch_bytes: the size limit of a response, in all and of one partition; a single
            batch of records comes even if it is larger.
        queued_max_bytes: how much may be fetched ahead, in all.
        max_poll_interval_ms: how long the user may take from one record (or list, or batch) to the next before the
            group gives the partitions to others; also the rebalance timeout: how long a rebalance waits for that.
        session_timeout_ms, heartbeat_interval_ms: of a classic group: how long without a heartbeat until a member is
            removed, and how often it sends one. In a consumer group, the broker decides.
        check_crcs: whether to check the checksums of fetched batches.
        allow_auto_create_topics: whether the broker may create a topic that is subscribed to by name but isn't there.
        key_deserializer, value_deserializer: called with bytes; null stays None. `RecordError` says where one fails.
        default_api_timeout_ms: how long methods that ask a broker may take.

    Raises:
        ConfigError: invalid settings.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        group_id: str | None = None,
        group_instance_id: str | None = None,
        group_protocol: str = "classic",
        partition_assignment_strategy: str | Sequence[str] = ("range", "cooperative-sticky"),
        group_remote_assignor: str | None = None,
        auto_offset_reset: str = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        isolation_level: str = "read_uncommitted",
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 50 * 1024 * 1024,
        max_partition_fetch_bytes: int = 1024 * 1024,
        queued_max_bytes: int = 64 * 1024 * 1024,
        max_poll_interval_ms: int = 300_000,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        check_crcs: bool = True,
        allow_auto_create_topics: bool = True,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        default_api_timeout_ms: int = 60_000,
    ) -> None:
        self._cluster = Cluster(servers)
        config = self._cluster.config
        strategy = partition_assignment_strategy
        if auto_commit_interval_ms <= 0:
            raise ConfigError(f"auto_commit_interval_ms={auto_commit_interval_ms} should be more than 0")
        self._group = (
            None
            if group_id is None
            else MembershipSettings(
                group_id=group_id,
                group_instance_id=group_instance_id,
                group_protocol=group_protocol,
                partition_assignment_strategy=(strategy,) if isinstance(strategy, str) else tuple(strategy),
                group_remote_assignor=group_remote_assignor,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=heartbeat_interval_ms,
                max_poll_interval_ms=max_poll_interval_ms,
                client_rack=config.client_rack,
                request_timeout_ms=config.request_timeout_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                retry_backoff_max_ms=config.retry_backoff_max_ms,
            )
        )
        self._settings = ConsumerSettings(
            fetch=FetchSettings(
                isolation_level=isolation_level,
                fetch_min_bytes=fetch_min_bytes,
                fetch_max_wait_ms=fetch_max_wait_ms,
                fetch_max_bytes=fetch_max_bytes,
                max_partition_fetch_bytes=max_partition_fetch_bytes,
                queued_max_bytes=queued_max_bytes,
                check_crcs=check_crcs,
            ),
            auto_offset_reset=ResetPolicy.parse(auto_offset_reset),
            auto_commit_interval_ms=auto_commit_interval_ms if enable_auto_commit else None,
            max_poll_interval_ms=max_poll_interval_ms,
            default_api_timeout_ms=default_api_timeout_ms,
            allow_auto_create_topics=allow_auto_create_topics,
        )
        self._deserializers = key_deserializer, value_deserializer
        self._running_consumer: RunningConsumer | None = None
        self._closed = False

    async def start(self) -> None:
        """Finds the cluster: tries one server after the other, in rounds, until one answers.

        Raises:
            NoBrokerError: none did within `bootstrap_timeout_ms`; without that setting it tries for ever.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
        """
        if self._closed:
            raise ClosedError("the consumer is closed; make another one")
        if self._running_consumer is None:
            await self._cluster.start()
            self._running_consumer = RunningConsumer(self._cluster, self._settings, self._group, *self._deserializers)
            await self._running_consumer.start()

    async def close(self, timeout_ms: int = 30_000) -> None:
        """Commits what was given (with auto commit), leaves the group, and stops. Ends within `timeout_ms`.

        Loops over the consumer end at their next step. May be called twice, and inside of such a loop.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._running_consumer is not None:
                await self._running_consumer.close(timeout_ms)
        finally:
            await self._cluster.close()

    # What to read.

    def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Share the partitions of topics with the other members of the group; replaces an earlier subscription.

        Args:
            topics: names.
            pattern: a regular expression instead, which matches whole names.
            on_assign: called (and awaited, if a coroutine function) with assigned partitions before they are read: it
                may seek.
            on_revoke: called with revoked partitions, when the loop has come back for its next record.
            on_lost: called with partitions that another member may own by now; by default `on_revoke` is.

        Raises:
            ConfigError: neither topics nor a pattern, or both.
            ClientError: there's no group, or partitions are assigned by hand.
        """
        running = self._running()
        if running.connector is None:
            raise ClientError("subscribe needs a group_id; without a group, assign partitions")
        if running.by_hand:
            raise ClientError("partitions are assigned by hand: unsubscribe first")
        subscription = Subscription(frozenset(topics), pattern)
        if not subscription:
            raise ConfigError("subscribe to what? Name topics or give a pattern; unsubscribe ends a subscription")
        subscription.matched(())  # raises for an invalid pattern
        running.rebalancing.subscription = subscription
        running.rebalancing.listeners = RebalanceListeners(on_assign, on_revoke, on_lost)
        running.create(subscription.topics)
        running.connector.subscription_changed()

    def unsubscribe(self) -> None:
        """Ends reading: leaves the group, or drops the partitions assigned by hand."""
        running = self._running()
        if running.rebalancing.subscription:
            assert running.connector is not None
            running.rebalancing.subscription = Subscription()
            running.hold()
            running.connector.subscription_changed()
        elif running.by_hand:
            running.assign(set())

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Reads just these partitions, without the group's assignment; those assigned before keep their positions.

        Reading begins at the group's committed offset if there is a group, else as `auto_offset_reset` says.

        Raises:
            ClientError: topics are subscribed to.
        """
        running = self._running()
        if running.rebalancing.subscription:
            raise ClientError("topics are subscribed to: unsubscribe first")
        running.assign({TopicPartition(*partition) for partition in partitions})

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        return set(self._running().partitions.by_name)

    def subscription(self) -> Subscription:
        """The topics, or the pattern, subscribed to."""
        return self._running().rebalancing.subscription

    # Reading.

    def __aiter__(self) -> AsyncIterator[Record]:
        """Record by record, partition by partition in turns; ends when the consumer is closed.

        Breaking out of the loop loses nothing: the next loop begins after the last record that was given.

        Raises:
            RecordError: a record can't be read; seek past it.
            NoOffsetError: nothing says where to begin.
            ClientError: another task is reading, or there's nothing to read.
            KafkaError: a broker refuses.
        """
        return self._running().collector.records()

    def batches(self, max_bytes: int | None = None) -> AsyncIterator[pa.RecordBatch]:
        """Arrow batch by Arrow batch, each of one partition, with no Python object for a record.

        The columns are `topic` (dictionary-encoded), `partition` (int32) and those of
        `kohort.protocol.records.columns.RECORD_SCHEMA`; deserializers aren't called. With `max_bytes`, batches are
        about so large at most. Raises as `__aiter__`.
        """
        require("arrow", "consuming Arrow batches", ARROW)
        return self._running().collector.batches(max_bytes)

    async def poll(self, max_records: int = 500, timeout_ms: float = 1_000) -> list[Record]:
        """Returns up to so many records, as soon as there are some; none after the timeout. Raises as `__aiter__`."""
        return await self._running().collector.poll(max_records, timeout_ms)

    async def poll_batch(self, timeout_ms: float = 1_000) -> pa.RecordBatch | None:
        """An Arrow batch as of `batches`, or None if none comes in time."""
        require("arrow", "consuming Arrow batches", ARROW)
        return await self._running().collector.poll_batch(timeout_ms)

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Gives no records of these partitions until `resume`; fetched records are kept, if there's room."""
        for partition in partitions:
            self._running().pause(TopicPartition(*partition))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Gives records of these partitions again, from where they were."""
        for partition in partitions:
            self._running().resume(TopicPartition(*partition))

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {each.topic_partition for each in self._running().partitions if each.paused}

    # Where.

    def position(self, partition: tuple[str, int]) -> int | None:
        """The offset of the next record to be given; None while it's being looked up.

        Raises:
            ValueError: the partition isn't assigned.
        """
        running = self._running()
        running.collector.sync()
        position = running.partitions[TopicPartition(*partition)].position
        return None if position < 0 else position

    def seek(self, partition: tuple[str, int], offset: Offset) -> None:
        """Moves to an offset; what was fetched before is dropped.

        Raises:
            ValueError: the partition isn't assigned, or the offset is negative.
        """
        place = _placed(offset)
        if place.offset < 0:
            raise ValueError(f"offset {place.offset} is negative; see seek_to_beginning and seek_to_end")
        self._running().seek(TopicPartition(*partition), place.offset, place.leader_epoch)

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Moves to the beginnings of the logs: of these partitions, or of all that are assigned."""
        await self._running().seek_to(dict.fromkeys(self._chosen(partitions), EARLIEST))

    async def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Moves to the ends of the logs: of these partitions, or of all that are assigned."""
        await self._running().seek_to(dict.fromkeys(self._chosen(partitions), LATEST))

    async def seek_to_time(self, times: Mapping[TopicPartition, int]) -> None:
        """Moves to the first record of a time (ms since 1970) or later, else to the log's end."""
        await self._running().seek_to({TopicPartition(*partition): time for partition, time in times.items()})

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, isolation_level: str | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of a time (ms since 1970) or later in each partition; None if there is none.

        Raises:
            KafkaError: a partition doesn't exist, or may not be read.
            ConnectionLostError, RequestTimeoutError: a leader couldn't be asked within `default_api_timeout_ms`.
        """
        wanted = {TopicPartition(*partition): time for partition, time in times.items()}
        return await self._running().find(wanted, committed=_committed(isolation_level))

    async def beginning_offsets(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """The offsets where the logs begin: of these partitions, or of all that are assigned. Raises as above."""
        return await self._running().ends(self._chosen(partitions), EARLIEST)

    async def end_offsets(
        self, *partitions: tuple[str, int], isolation_level: str | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets where the logs end: of these partitions, or of all that are assigned. Raises as above.

        With "read_committed" (the consumer's own `isolation_level` by default), that's before open transactions.
        """
        committed = _committed(isolation_level)
        return await self._running().ends(self._chosen(partitions), LATEST, committed=committed)

    async def lag(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """Returns how many offsets lie between positions (where known) and the logs' ends. Raises as above."""
        positions = {partition: self.position(partition) for partition in self._chosen(partitions)}
        ends = await self.end_offsets(*positions)
        return {at: max(0, ends[at] - position) for at, position in positions.items() if position is not None}

    # The group's offsets.

    async def commit(self, offsets: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Commit these offsets (of the next records to read), or up to the last record that was given, included.

        Raises:
            ClientError: there's no group.
            CommitFailedError: the member doesn't have the partitions any more; others read them again.
            FencedError: another member has this one's `group_instance_id`.
            PartialFailureError: some partitions' offsets couldn't be committed.
            KafkaError, ConnectionLostError, RequestTimeoutError: none could.
        """
        running = self._in_group()
        assert running.commits is not None
        await running.commits.commit(_all_placed(offsets), timeout_ms=self._settings.default_api_timeout_ms)

    def commit_soon(
        self, offsets: Mapping[TopicPartition, Offset] | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit in the background, after the commits before; `callback` gets the offsets, and the error or None."""
        running = self._in_group()
        assert running.commits is not None
        running.commits.commit_soon(_all_placed(offsets), callback)

    async def committed(self, *partitions: tuple[str, int]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Returns the group's committed offsets: of these partitions, or of all that are assigned; None for nothing."""
        running = self._in_group()
        assert running.connector is not None
        wanted = self._chosen(partitions)
        return await running.connector.committed(wanted, timeout_ms=self._settings.default_api_timeout_ms)

    def group_metadata(self) -> GroupMetadata:
        """Returns the member's id and generation, which a producer's transaction needs to commit its offsets."""
        running = self._in_group()
        assert running.connector is not None
        return running.connector.group_metadata()

    # Topics.

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """A topic's partitions.

        Raises:
            KafkaError: there is no such topic, or it may not be described.
        """
        timeout_ms = self._settings.default_api_timeout_ms
        info = await self._cluster.topic(topic, timeout_ms=timeout_ms)
        return list(info.partitions.values())

    async def topics(self) -> set[str]:
        """The names of all topics that may be described, but for Kafka's own."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        timeout_ms = self._settings.default_api_timeout_ms
        answer = await self._cluster.ask_any(request, MetadataResponse, timeout_ms=timeout_ms)
        return {topic.name for topic in answer.topics if topic.name and not topic.is_internal and not topic.error_code}

    def _running(self) -> RunningConsumer:
        if self._closed:
            raise ClosedError("the consumer is closed")
        if self._running_consumer is None:
            raise ClientError("the consumer isn't started: use `async with`, or call start() first")
        return self._running_consumer

    def _in_group(self) -> RunningConsumer:
        running = self._running()
        if running.connector is None:
            raise ClientError("offsets are committed for a group: give the consumer a group_id")
        return running

    def _chosen(self, partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
        return [TopicPartition(*each) for each in partitions] or list(self._running().partitions.by_name)


def _committed(isolation_level: str | None) -> bool | None:
    return None if isolation_level is None else FetchSettings(isolation_level=isolation_level).committed


def _placed(offset: Offset) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset) if isinstance(offset, int) else offset


def _all_placed(offsets: Mapping[TopicPartition, Offset] | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    return None if offsets is None else {TopicPartition(*at): _placed(offset) for at, offset in offsets.items()}
