"""The list of fetchers, one a broker: who fetches what, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_if_loaded
from kohort.client.consuming.answers import PIECE_BYTES, SMALL_PIECE_BYTES, read_answer
from kohort.client.consuming.fetch_session import Ask
from kohort.client.consuming.fetcher import Fetcher
from kohort.client.consuming.partitions import EARLIEST, ConsumedPartition, ConsumedPartitions, Phase
from kohort.client.consuming.settings import FetchSettings
from kohort.client.errors import kafka_error
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.schema import NO_UUID

__all__ = ["Fetchers"]

log = logging.getLogger("kohort.client.consumer")

_Read = FetchResponse.TopicResponse.Partition

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)  # fmt: skip
"""Errors after which the cluster's state is asked for anew, and then the partition is tried again."""


class Fetchers:
    """Starts a fetcher for each broker that leads some of the partitions, and takes in what they bring.

    Args:
        cluster: started.
        partitions: what is consumed; what comes is queued there.
        settings: how to fetch.
        arrived: called when there's something to give or to tell.
        offsets_wanted: called when some partition needs an offset looked up.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: ConsumedPartitions,
        settings: FetchSettings,
        arrived: Callable[[], None],
        offsets_wanted: Callable[[], None],
    ) -> None:
        self.cluster = cluster
        self.partitions = partitions
        self.settings = settings
        self._arrived = arrived
        self._offsets_wanted = offsets_wanted
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
        """Bytes that a fetcher may ask for now: each has the same share of what may be queued."""
        partitions = self.partitions
        share = max(1, self.settings.queued_max_bytes // self._sharing)
        if partitions.queued >= share and partitions.next_with_news() is None:
            partitions.forget_paused()  # or nothing would ever come again
        return share - partitions.queued

    async def close(self) -> None:
        """Stop all fetchers."""
        self._closed = True
        self._stop_listening()
        fetchers, self._by_broker = list(self._by_broker.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers))

    def suspend(self) -> None:
        """Let no fetcher ask any more, and drop what comes, until `resume`."""
        self._suspended = True
        for fetcher in self._by_broker.values():
            fetcher.look_again()

    def resume(self) -> None:
        """Let the fetchers ask again."""
        self._suspended = False
        self.update()

    @property
    def suspended(self) -> bool:
        """Whether nothing is to be fetched."""
        return self._suspended or self._closed

    def update(self) -> None:
        """Assignment, positions or leaders have changed: have each partition fetched by the right fetcher."""
        if self.suspended:
            return
        now = self.now
        for partition in self.partitions:
            self._place(partition, now)
        brokers = self.partitions.brokers()
        self._sharing = max(1, len(brokers))
        for node_id in brokers - self._by_broker.keys():
            self._by_broker[node_id] = Fetcher(node_id, self)
        for fetcher in self._by_broker.values():
            fetcher.look_again()

    def room_made(self) -> None:
        """The user has taken something: those who waited for room may go on."""
        for fetcher in self._by_broker.values():
            fetcher.look_again_for_room()

    def _place(self, partition: ConsumedPartition, now: float) -> None:
        """Find the broker to fetch a partition from, and notice what is new about its leader."""
        info = self.cluster.info
        at = partition.topic_partition
        leader = info.leader(at)
        if leader is None:
            partition.broker = None
            if partition.phase is not Phase.FAILED:
                self.cluster.request_refresh()
            return
        if partition.replica is not None and (now > partition.replica_until or partition.replica not in info.brokers):
            partition.replica = None
        partition.broker = leader.node_id if partition.replica is None else partition.replica
        topic_id = info.topics[at.topic].topic_id
        if partition.topic_id not in (NO_UUID, topic_id):
            log.info("%s: the topic was deleted and made anew", at)
            partition.leader_epoch = partition.position_epoch = -1
            partition.topic_id = topic_id
            self.partitions.reset_by_policy(partition, "the topic was deleted and made anew", to=EARLIEST)
            self._offsets_wanted()
            return
        partition.topic_id = topic_id
        epoch = info.leader_epoch(at)
        if partition.phase is Phase.READY and epoch > partition.leader_epoch:
            if partition.leader_epoch >= 0 and partition.position_epoch >= 0:
                partition.phase = Phase.CHECK
                self._offsets_wanted()
            partition.leader_epoch = epoch

    # What a fetcher asks, and brings.

    def wanted(self, node_id: int) -> dict[TopicPartition, Ask]:
        """What to ask a broker for: nothing while some of its partitions have enough waiting.

        All of a broker's partitions are asked for together: the broker may hold an answer back for
        `fetch_max_wait_ms`, and a partition that isn't in the question waits for so long.
        """
        if self.suspended:
            return {}
        now = self.now
        asks = {}
        for partition in self.partitions.wanted(node_id):
            if partition.full:
                return {}
            if partition.retry_at <= now:
                asks[partition.topic_partition] = Ask(
                    partition.topic_id, partition.fetched, partition.fetch_size, partition.leader_epoch
                )
        return asks

    def retry_at(self, node_id: int) -> float | None:
        """When a partition of a broker may be tried again, if one waits for that: ms of the loop's clock."""
        return min((partition.retry_at for partition in self.partitions.wanted(node_id)), default=None)

    def unsettled(self) -> bool:
        """Whether partitions will be ready to be fetched in a moment, so that no fetch should be held back for long."""
        now = self.now
        return any(
            partition.phase in (Phase.COMMITTED, Phase.RESET, Phase.CHECK) and partition.retry_at <= now
            for partition in self.partitions
        )

    def took(self, node_id: int, at: TopicPartition, ask: Ask, read: _Read) -> None:
        """Take in what a broker answered for a partition, unless something else is wanted by now."""
        partition = self.partitions.by_name.get(at)
        if self.suspended or partition is None:
            return
        if partition.phase is not Phase.READY or partition.fetched != ask.offset:
            return
        if partition.topic_id != ask.topic_id and NO_UUID not in (partition.topic_id, ask.topic_id):
            return
        if read.error_code:
            self._refused(node_id, partition, read)
            return
        partition.succeeded()
        partition.high_watermark = read.high_watermark
        partition.last_stable_offset = read.last_stable_offset
        partition.log_start_offset = read.log_start_offset
        if read.preferred_read_replica >= 0 and read.preferred_read_replica != node_id:
            self._prefer(partition, read.preferred_read_replica)
        elif partition.replica is not None and self.now > partition.replica_until:
            self.update()  # ask the leader again
        if read.records:
            data = bytes(read.records)
            aborted = read.aborted_transactions if self.settings.committed else None
            piece_bytes = SMALL_PIECE_BYTES if columns_if_loaded() is None else PIECE_BYTES
            answer = read_answer(at, data, ask.offset, aborted, check=self.settings.check_crcs, piece_bytes=piece_bytes)
            self.partitions.put(partition, answer)
            self._arrived()

    def _prefer(self, partition: ConsumedPartition, replica: int) -> None:
        """Fetch from the replica that the leader names."""
        if replica not in self.cluster.info.brokers:
            # The leader gives nothing while it thinks so; a fetcher that asked it again at once would go in circles.
            partition.retry_at = self.now + self.cluster.config.retry_backoff_max_ms
            self.cluster.request_refresh()
            return
        partition.replica = replica
        partition.replica_until = self.now + self.cluster.config.metadata_max_age_ms
        self.update()

    def _refused(self, node_id: int, partition: ConsumedPartition, read: _Read) -> None:
        at = partition.topic_partition
        error = kafka_error(read.error_code, str(at))
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
            self._offsets_wanted()
            self._arrived()
        elif error.code in _LEADER_MOVED or error.code.retriable:
            partition.replica = None
            hint = read.current_leader
            if hint is not None and self.cluster.learn_leader(at, hint.leader_id, hint.leader_epoch):
                partition.retry_at = 0
                return
            self.cluster.request_refresh()
        else:
            self.partitions.fail(partition, error)
            self._arrived()

    def learn_brokers(self, answer: FetchResponse) -> None:
        """Take the addresses that come with hints (KIP-951), before the hints."""
        for each in answer.node_endpoints:
            self.cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))

    def lost(self, node_id: int) -> None:
        """A broker can't be reached: look for others that have its partitions."""
        for partition in self.partitions:
            if partition.replica == node_id:
                partition.replica = None
        self.cluster.request_refresh()
        self.update()

    def failed(self, node_id: int, error: Exception) -> None:
        """A broker can't be asked at all: the user has to know, with one of its partitions."""
        for partition in self.partitions.wanted(node_id)[:1]:
            self.partitions.fail(partition, error)
        self._arrived()
