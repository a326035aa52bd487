"""The fetchers, one for each broker: which partitions they fetch and acknowledge, and what the answers mean."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_if_loaded
from kohort.client.consuming.completed_fetch import PIECE_BYTES, SMALL_PIECE_BYTES
from kohort.client.errors import ClosedError, kafka_error
from kohort.client.sharing.acknowledgements import AcknowledgeType, OffsetSpan
from kohort.client.sharing.acquired import AcquiredRange, read_acquired
from kohort.client.sharing.delivery import Delivery
from kohort.client.sharing.membership import ShareMembership
from kohort.client.sharing.settings import ShareSettings
from kohort.client.sharing.share_fetcher import ShareFetcher
from kohort.client.sharing.share_session import PartitionKey
from kohort.client.sharing.shared_partitions import SharedPartition, SharedPartitions
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from kohort.protocol.messages.share_fetch import ShareFetchResponse

log = logging.getLogger("kohort.client.share_consumer")

_Fetched = ShareFetchResponse.TopicResponse.Partition
_Leader = ShareFetchResponse.TopicResponse.Partition.CurrentLeader | (
    ShareAcknowledgeResponse.TopicResponse.Partition.CurrentLeader
)

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_STATE_EPOCH,
    }
)  # fmt: skip
"""Errors of a broker that holds no locks for us (any more): metadata is refreshed, and the partition tried again."""

_PREFETCH_WAIT_MS: Final = 10
"""How long a broker may hold a response back while the user is at work, and acknowledgements may come any time."""

_USER_ERROR_PAUSE_MS: Final = 1_000
"""How long a partition isn't fetched after its error was raised to the user."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a fetcher is to do next.

    Attributes:
        fetch: the partitions to fetch; None to fetch nothing.
        acknowledge: those to acknowledge.
        max_wait_ms: how long the broker may hold a response to the fetch back.
        until: if there's nothing to do, when to ask again; None: when woken.
    """

    fetch: Sequence[SharedPartition] | None = None
    acknowledge: Sequence[SharedPartition] = field(default_factory=tuple)
    max_wait_ms: int = 0
    until: float | None = None


class ShareFetchers:
    """Gives each partition to the fetcher of its leader, and takes the responses.

    Args:
        cluster: started.
        fail: raises an error in the user's loop.
    """

    def __init__(
        self,
        cluster: Cluster,
        membership: ShareMembership,
        partitions: SharedPartitions,
        delivery: Delivery,
        settings: ShareSettings,
        fail: Callable[[Exception], None],
    ) -> None:
        self.cluster = cluster
        self.membership = membership
        self.settings = settings
        self.fail = fail
        self._partitions = partitions
        self._delivery = delivery
        self._by_broker: dict[int, ShareFetcher] = {}
        self._stop_listening = cluster.on_change(lambda changes: self.update())
        self._lock_ms = 0.0
        self._dry: set[int] = set()  # brokers that had nothing when asked ahead; ask again when the user waits
        self._fetching: int | None = None  # with a strict limit: the one broker that is asked
        self._asked_at: dict[int, float] = {}
        self.closing = False

    @property
    def now(self) -> float:
        """Ms of the event loop's clock."""
        return asyncio.get_running_loop().time() * 1000

    @property
    def renew_locks(self) -> bool | None:
        """Whether all brokers that were asked renew locks; None: none was."""
        known = [each.renews for each in self._by_broker.values() if each.renews is not None]
        return all(known) if known else None

    async def close(self, timeout_ms: float) -> None:
        """Sends what is acknowledged, and closes the sessions, so that brokers release the rest."""
        self.closing = True
        self._stop_listening()
        fetchers, self._by_broker = list(self._by_broker.values()), {}
        try:
            if fetchers:
                await asyncio.wait([fetcher.finish() for fetcher in fetchers], timeout=timeout_ms / 1000)
        finally:
            await asyncio.gather(*(fetcher.close() for fetcher in fetchers))
            error = ClosedError("the consumer was closed before a broker answered")
            for partition in tuple(self._partitions.by_key.values()):
                self._partitions.lose(partition, error, self.now)

    def update(self) -> None:
        """Assignment or leaders have changed: gives each partition to the right fetcher."""
        if self.closing:
            return
        info, now = self.cluster.info, self.now
        names: dict[PartitionKey, TopicPartition] = {}
        for topic_id, number in self.membership.assignment:
            name = info.names.get(topic_id)
            if name is None:
                self.cluster.request_refresh()
            else:
                names[topic_id, number] = TopicPartition(name, number)
        for gone in self._partitions.assign(names, now):
            for span in self._delivery.retract(gone, first_deliveries=True):
                gone.book.acknowledge_rest(*span, AcknowledgeType.RELEASE, now)
        for partition in tuple(self._partitions.by_key.values()):
            leader = info.leader(partition.at)
            if leader is None:
                if partition.assigned:
                    self.cluster.request_refresh()
            elif partition.node_id != leader.node_id:
                if partition.node_id is not None:
                    self._lose(partition, kafka_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition.at} has moved"))
                partition.node_id, partition.retry_at = leader.node_id, 0.0
        for node_id in {each.node_id for each in self._partitions.by_key.values()} - self._by_broker.keys() - {None}:
            assert node_id is not None
            self._by_broker[node_id] = ShareFetcher(node_id, self)
        self.wake()

    def wake(self) -> None:
        """There may be something to do."""
        if self._delivery.waiting:
            self._dry.clear()
        for fetcher in self._by_broker.values():
            fetcher.wake()

    # What to do.

    def turn(self, node_id: int, *, renews: bool) -> Turn:
        """Returns what a broker's fetcher is to do now; `renews` is whether the broker renews locks."""
        now, delivery = self.now, self._delivery
        delivery.sync()
        mine = self._partitions.of(node_id)
        renew_at = self._renew(mine, now) if renews else None
        ready = [each for each in mine if each.assigned and each.retry_at <= now]
        sendable = [each for each in mine if each.sendable(now)]
        fetch = bool(ready) and self._may_fetch(node_id)
        since = min((each.book.pending_since for each in sendable if each.book.pending_since is not None), default=now)
        due = since + self.settings.acknowledge_linger_ms
        if sendable and (due <= now or fetch or self.closing or self._partitions.urgent(sendable)):
            aside = any(each not in ready or each.book.renewing for each in sendable)
            if not fetch or aside:
                return Turn(acknowledge=sendable)
        if fetch:
            if self.settings.strict:
                self._fetching = node_id
            return Turn(fetch=ready, acknowledge=sendable, max_wait_ms=self._max_wait())
        if self.closing:  # only what has to be sent again is waited for
            return Turn(until=min((each.acknowledge_at for each in mine if each.book.sendable), default=None))
        times = [each.retry_at for each in mine if each.assigned and each.retry_at > now]
        times += [each.acknowledge_at for each in mine if each.acknowledge_at > now]
        if sendable:
            times.append(due)
        if renew_at is not None:
            times.append(renew_at)
        if delivery.unaccepted:
            times.append(now + max(self.settings.acknowledge_linger_ms, 10))
        return Turn(until=min(times, default=None))

    def _renew(self, mine: Iterable[SharedPartition], now: float) -> float | None:
        """Renews locks that are half over; returns when to look again."""
        half = self._lock_ms / 2
        if not half or self.closing or now - self._delivery.last_poll() > self.settings.lock_renewal_ms:
            return None
        found = []
        for partition in mine:
            deadline = partition.book.next_deadline(now)
            if deadline is not None and deadline <= now + half:
                partition.book.renew(now + half, now)
                found.append(now + half)
            elif deadline is not None:
                found.append(deadline - half)
        return min(found, default=None)

    def _may_fetch(self, node_id: int) -> bool:
        if self.closing or self._delivery.closed:
            return False
        undelivered = self._partitions.undelivered
        if self._delivery.waiting:
            if not self.settings.strict:
                return not undelivered[node_id]
            return not undelivered.total() and self._fetching is None and self._is_next(node_id)
        ahead = self.settings.max_poll_records // 2
        return (
            not self.settings.strict
            and self._delivery.reading
            and node_id not in self._dry
            and undelivered[node_id] <= ahead
            and not undelivered.total() > ahead
        )

    def _is_next(self, node_id: int) -> bool:
        """Whether no other broker with partitions to fetch was asked longer ago."""
        now, asked = self.now, self._asked_at
        ready = {each.node_id for each in self._partitions.by_key.values() if each.assigned and each.retry_at <= now}
        return all(asked.get(node_id, 0.0) <= asked.get(other, 0.0) for other in ready if other is not None)

    def _max_wait(self) -> int:
        most = self.settings.fetch_max_wait_ms
        if not self._delivery.waiting:
            return min(most, _PREFETCH_WAIT_MS)
        return most // max(1, len(self._by_broker)) if self.settings.strict else most

    # What the answers mean.

    def fetched(self, node_id: int, asked: Sequence[SharedPartition], response: ShareFetchResponse) -> None:
        """Takes a response without an error of its own; `asked` has the partitions that were acknowledged with it."""
        now = self.now
        asked = [each for each in asked if each.node_id == node_id]  # the others were settled when they moved
        self._learn_brokers(response.node_endpoints)
        self._learn_lock(response.acquisition_lock_timeout_ms)
        deadline = now + response.acquisition_lock_timeout_ms
        brought = False
        for topic in response.responses:
            for data in topic.partitions:
                partition = self._partitions.by_key.get((topic.topic_id, data.partition_index))
                if partition is None or partition.node_id != node_id:
                    continue
                if partition in asked:
                    self._acknowledged(
                        partition, data.acknowledge_error_code, data.acknowledge_error_message, data.current_leader, now
                    )
                if data.error_code:
                    self._fetch_failed(partition, data, now)
                elif data.acquired_records:
                    brought = True
                    self._acquired(partition, data, deadline, now)
        self._unanswered(asked, now)
        if brought:
            self._dry.discard(node_id)
            self._delivery.wake()
        elif not self._delivery.waiting:
            self._dry.add(node_id)
        self._fetch_ended(node_id)

    def acknowledged(self, node_id: int, asked: Sequence[SharedPartition], response: ShareAcknowledgeResponse) -> None:
        """Takes a response without an error of its own."""
        now = self.now
        asked = [each for each in asked if each.node_id == node_id]
        self._learn_brokers(response.node_endpoints)
        self._learn_lock(response.acquisition_lock_timeout_ms)
        for topic in response.responses:
            for data in topic.partitions:
                partition = self._partitions.by_key.get((topic.topic_id, data.partition_index))
                if partition is not None and partition in asked:
                    self._acknowledged(partition, data.error_code, data.error_message, data.current_leader, now)
        self._unanswered(asked, now)

    def renewals_unsupported(self, partition: SharedPartition) -> None:
        """The broker can't renew locks: that is reported, and other acknowledgements are sent again."""
        error = kafka_error(ErrorCode.UNSUPPORTED_VERSION, "renewing a lock takes Apache Kafka 4.2 or kohort serve")
        self._partitions.settle(partition, partition.book.failed(divide=True, keeps_locks=True), error)

    def session_lost(self, node_id: int, error: Exception) -> None:
        """The session with a broker has ended, and with it what it had locked for us."""
        for partition in self._partitions.of(node_id):
            self._lose(partition, error)
        self._fetch_ended(node_id)
        self.wake()

    def retry_later(self, node_id: int) -> None:
        """A broker can't be reached: looks for new leaders of its partitions."""
        self.cluster.request_refresh()
        self._fetch_ended(node_id)

    def _fetch_ended(self, node_id: int) -> None:
        if self._fetching == node_id:
            self._fetching = None
            self._asked_at[node_id] = self.now
            self.wake()

    def _lose(self, partition: SharedPartition, error: Exception) -> None:
        for span in self._delivery.retract(partition):
            partition.book.drop(*span)
        self._partitions.lose(partition, error, self.now)

    def _learn_lock(self, timeout_ms: int) -> None:
        if timeout_ms > 0:
            self._lock_ms = float(timeout_ms)

    def _learn_brokers(
        self, endpoints: Iterable[ShareFetchResponse.NodeEndpoint | ShareAcknowledgeResponse.NodeEndpoint]
    ) -> None:
        for each in endpoints:
            self.cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))

    def _unanswered(self, asked: Iterable[SharedPartition], now: float) -> None:
        """What the broker says nothing about hasn't been acknowledged."""
        for partition in asked:
            if partition.book.in_flight:
                error = kafka_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition.at}: the response lacks it")
                self._partitions.settle(partition, partition.book.failed(), error)
        self._partitions.tidy(now)

    def _acknowledged(
        self, partition: SharedPartition, code: int, message: str | None, leader: _Leader | None, now: float
    ) -> None:
        book, partitions = partition.book, self._partitions
        if not code:
            partition.failures = 0
            partitions.settle(partition, book.succeeded(now + self._lock_ms), None)
            return
        error = kafka_error(code, message or str(partition.at))
        if error.code in _LEADER_MOVED:
            self._lose(partition, error)
            self._redirect(partition, leader, now)
            return
        since = book.in_flight_since
        if error.code.retriable and since is not None and now - since < self.settings.default_api_timeout_ms:
            book.retry()
            partition.acknowledge_at = self._pause(partition, now)
            return
        partitions.settle(partition, book.failed(divide=error.code is ErrorCode.INVALID_RECORD_STATE), error)

    def _pause(self, partition: SharedPartition, now: float) -> float:
        backoff = self.cluster.backoff()
        backoff.attempts = partition.failures
        partition.failures += 1
        return now + backoff.next()

    def _redirect(self, partition: SharedPartition, leader: _Leader | None, now: float) -> None:
        """Follows the leader that a broker names, or looks for it."""
        partition.retry_at = self._pause(partition, now)
        if leader is not None and self.cluster.learn_leader(partition.at, leader.leader_id, leader.leader_epoch):
            partition.retry_at = 0.0
        else:
            self.cluster.request_refresh()

    def _fetch_failed(self, partition: SharedPartition, data: _Fetched, now: float) -> None:
        error = kafka_error(data.error_code, data.error_message or str(partition.at))
        if error.code in _LEADER_MOVED:
            self._lose(partition, error)
            self._redirect(partition, data.current_leader, now)
        elif error.code.retriable:
            partition.retry_at = self._pause(partition, now)
        else:
            partition.retry_at = now + _USER_ERROR_PAUSE_MS
            self.fail(error)

    def _acquired(self, partition: SharedPartition, data: _Fetched, deadline: float, now: float) -> None:
        partition.failures = 0
        ranges = [
            AcquiredRange(each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records
        ]
        for first, last, _ in ranges:
            late = partition.book.acquire(first, last, deadline)
            self._partitions.settle(partition, late, kafka_error(ErrorCode.INVALID_RECORD_STATE, "the lock had ended"))
        found = read_acquired(
            partition.at,
            bytes(data.records or b""),
            ranges,
            check=self.settings.check_crcs,
            piece_bytes=SMALL_PIECE_BYTES if columns_if_loaded() is None else PIECE_BYTES,
        )
        if partition.assigned and not self.closing:
            self._partitions.add(partition, found.pieces)
        else:
            for first, last, _ in ranges:
                partition.book.acknowledge_rest(first, last, AcknowledgeType.RELEASE, now)
        for span in found.missing:
            partition.book.acknowledge_rest(*span, AcknowledgeType.RELEASE, now)
        if found.corrupt is not None:
            partition.book.acknowledge_rest(*OffsetSpan(*found.corrupt), AcknowledgeType.REJECT, now)
        if found.error is not None:
            self.fail(found.error)
