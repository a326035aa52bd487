"""The fetchers, one for each broker: which fetches what, and what happens to their responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_if_loaded
from kohort.client.consuming.completed_fetch import PIECE_BYTES, SMALL_PIECE_BYTES, read_fetch
from kohort.client.consuming.consumed_partitions import EARLIEST, ConsumedPartition, ConsumedPartitions, FetchState
from kohort.client.consuming.fetch_session import PartitionFetch
from kohort.client.consuming.fetcher import Fetcher
from kohort.client.consuming.settings import FetchSettings
from kohort.client.errors import kafka_error
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.schema import NO_UUID

log = logging.getLogger("kohort.client.consumer")

_PartitionData = FetchResponse.TopicResponse.Partition

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)  # fmt: skip
"""Errors after which metadata is refreshed, and the partition retried."""


class Fetchers:
    """Starts a fetcher for each broker that leads some of the partitions, and queues what they fetch.

    Args:
        cluster: started.
        partitions: what is consumed; fetched data is queued there.
        wake_reader: called when there are records or an error for the user.
        need_offsets: called when some partition needs an offset looked up.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: ConsumedPartitions,
        settings: FetchSettings,
        wake_reader: Callable[[], None],
        need_offsets: Callable[[], None],
    ) -> None:
        self.cluster = cluster
        self.partitions = partitions
        self.settings = settings
        self._wake_reader = wake_reader
        self._need_offsets = need_offsets
        self._by_broker: dict[int, Fetcher] = {}
        self._stop_listening = cluster.on_change(lambda changes: self.update())
        self._sharing = 1
        self._suspended = False
        self._closed = False

    @property
    def now(self) -> float:
        """Ms of the event loop's clock."""
        return asyncio.get_running_loop().time() * 1000

    def room(self) -> int:
        """Returns the bytes that a fetcher may fetch now: each has the same share of `queued_max_bytes`."""
        partitions = self.partitions
        share = max(1, self.settings.queued_max_bytes // self._sharing)
        if partitions.queued >= share and partitions.next_ready() is None:
            partitions.forget_paused()  # or nothing would be fetched any more
        return share - partitions.queued

    async def close(self) -> None:
        self._closed = True
        self._stop_listening()
        fetchers, self._by_broker = list(self._by_broker.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers))

    def suspend(self) -> None:
        """Stops fetching, and drops responses, until `resume`."""
        self._suspended = True
        for fetcher in self._by_broker.values():
            fetcher.wake()

    def resume(self) -> None:
        self._suspended = False
        self.update()

    @property
    def suspended(self) -> bool:
        return self._suspended or self._closed

    def update(self) -> None:
        """Assignment, positions or leaders have changed: gives each partition to the right fetcher."""
        if self.suspended:
            return
        now = self.now
        for partition in self.partitions:
            self._find_broker(partition, now)
        brokers = self.partitions.brokers()
        self._sharing = max(1, len(brokers))
        for node_id in brokers - self._by_broker.keys():
            self._by_broker[node_id] = Fetcher(node_id, self)
        for fetcher in self._by_broker.values():
            fetcher.wake()

    def room_made(self) -> None:
        """The user has taken records: fetchers that waited for room may go on."""
        for fetcher in self._by_broker.values():
            fetcher.wake_for_room()

    def _find_broker(self, partition: ConsumedPartition, now: float) -> None:
        """Finds the broker to fetch a partition from; a new leader epoch means that the position is validated."""
        info = self.cluster.info
        at = partition.topic_partition
        leader = info.leader(at)
        if leader is None:
            partition.broker = None
            if partition.state is not FetchState.FAILED:
                self.cluster.request_refresh()
            return
        if partition.replica is not None and (now > partition.replica_until or partition.replica not in info.brokers):
            partition.replica = None
        partition.broker = leader.node_id if partition.replica is None else partition.replica
        topic_id = info.topics[at.topic].topic_id
        if partition.topic_id not in (NO_UUID, topic_id):
            log.info("%s: the topic was deleted and created again", at)
            partition.leader_epoch = partition.position_epoch = -1
            partition.topic_id = topic_id
            self.partitions.reset_by_policy(partition, "the topic was deleted and created again", to=EARLIEST)
            self._need_offsets()
            return
        partition.topic_id = topic_id
        epoch = info.leader_epoch(at)
        if partition.state is FetchState.FETCHING and epoch > partition.leader_epoch:
            if partition.leader_epoch >= 0 and partition.position_epoch >= 0:
                partition.state = FetchState.AWAIT_VALIDATION
                self._need_offsets()
            partition.leader_epoch = epoch

    # For the fetchers.

    def to_fetch(self, node_id: int) -> dict[TopicPartition, PartitionFetch]:
        """Returns what to fetch from a broker: nothing while the queue of one of its partitions is full.

        All of a broker's partitions are fetched together: the broker may hold a response back for
        `fetch_max_wait_ms`, and a partition that isn't in the request would wait for so long.
        """
        if self.suspended:
            return {}
        now = self.now
        fetches = {}
        for partition in self.partitions.fetchable_from(node_id):
            if partition.full:
                return {}
            if partition.retry_at <= now:
                fetches[partition.topic_partition] = PartitionFetch(
                    partition.topic_id, partition.fetched, partition.fetch_size, partition.leader_epoch
                )
        return fetches

    def retry_at(self, node_id: int) -> float | None:
        """Returns when a partition of a broker may be retried, if one waits for that: ms of the loop's clock."""
        return min((partition.retry_at for partition in self.partitions.fetchable_from(node_id)), default=None)

    def expects_more(self) -> bool:
        """Whether more partitions will be fetchable in a moment, so that no fetch should be held back for long."""
        now = self.now
        return any(
            partition.state in (FetchState.AWAIT_COMMITTED, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION)
            and partition.retry_at <= now
            for partition in self.partitions
        )

    def handle_partition(
        self, node_id: int, at: TopicPartition, requested: PartitionFetch, data: _PartitionData
    ) -> None:
        """Queues a partition's data from a fetch response, unless the position is another by now."""
        partition = self.partitions.by_name.get(at)
        if self.suspended or partition is None:
            return
        if partition.state is not FetchState.FETCHING or partition.fetched != requested.offset:
            return
        if partition.topic_id != requested.topic_id and NO_UUID not in (partition.topic_id, requested.topic_id):
            return
        if data.error_code:
            self._handle_error(node_id, partition, data)
            return
        partition.succeeded()
        partition.high_watermark = data.high_watermark
        partition.last_stable_offset = data.last_stable_offset
        partition.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node_id:
            self._use_replica(partition, data.preferred_read_replica)
        elif partition.replica is not None and self.now > partition.replica_until:
            self.update()  # ask the leader again
        if data.records:
            records = bytes(data.records)
            aborted = data.aborted_transactions if self.settings.committed else None
            piece_bytes = SMALL_PIECE_BYTES if columns_if_loaded() is None else PIECE_BYTES
            fetch = read_fetch(
                at, records, requested.offset, aborted, check=self.settings.check_crcs, piece_bytes=piece_bytes
            )
            self.partitions.add_fetched(partition, fetch)
            self._wake_reader()

    def _use_replica(self, partition: ConsumedPartition, replica: int) -> None:
        """Fetches from the replica that the leader prefers (KIP-392)."""
        if replica not in self.cluster.info.brokers:
            # Until metadata has the replica, the leader returns no records: a retry at once would loop.
            partition.retry_at = self.now + self.cluster.config.retry_backoff_max_ms
            self.cluster.request_refresh()
            return
        partition.replica = replica
        partition.replica_until = self.now + self.cluster.config.metadata_max_age_ms
        self.update()

    def _handle_error(self, node_id: int, partition: ConsumedPartition, data: _PartitionData) -> None:
        at = partition.topic_partition
        error = kafka_error(data.error_code, str(at))
        backoff = self.cluster.backoff()
        backoff.attempts = partition.failures
        partition.failures += 1
        partition.retry_at = self.now + backoff.next()
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if partition.replica is not None:
                partition.replica = None  # a follower may lag behind; the leader knows
                partition.retry_at = 0
                self.update()
                return
            partition.succeeded()
            self.partitions.reset_by_policy(partition, "the broker doesn't have this offset")
            self._need_offsets()
            self._wake_reader()
        elif error.code in _LEADER_MOVED or error.code.retriable:
            partition.replica = None
            hint = data.current_leader
            if hint is not None and self.cluster.learn_leader(at, hint.leader_id, hint.leader_epoch):
                partition.retry_at = 0
                return
            self.cluster.request_refresh()
        else:
            self.partitions.fail(partition, error)
            self._wake_reader()

    def learn_brokers(self, response: FetchResponse) -> None:
        """Takes the addresses of new leaders (KIP-951), before the leaders themselves."""
        for each in response.node_endpoints:
            self.cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))

    def lost(self, node_id: int) -> None:
        """A broker can't be reached: looks for new leaders of its partitions."""
        for partition in self.partitions:
            if partition.replica == node_id:
                partition.replica = None
        self.cluster.request_refresh()
        self.update()

    def failed(self, node_id: int, error: Exception) -> None:
        """A broker can't be asked at all: raises the error to the user, with one of its partitions."""
        for partition in self.partitions.fetchable_from(node_id)[:1]:
            self.partitions.fail(partition, error)
        self._wake_reader()
