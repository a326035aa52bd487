"""The parts of a started consumer, put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Iterable, Mapping

from kohort.client.cluster import Cluster
from kohort.client.consuming.commits import Commits
from kohort.client.consuming.consumed_partitions import LATEST, ConsumedPartition, ConsumedPartitions, FetchState
from kohort.client.consuming.decoding import Deserializer
from kohort.client.consuming.fetch_collector import FetchCollector
from kohort.client.consuming.fetchers import Fetchers
from kohort.client.consuming.log_offsets import LogOffsets
from kohort.client.consuming.positions import Positions
from kohort.client.consuming.rebalance_handler import RebalanceHandler
from kohort.client.consuming.settings import ConsumerSettings
from kohort.client.coordinator_connector import CoordinatorConnector, MembershipSettings
from kohort.client.errors import ClientError
from kohort.client.types import OffsetAndTimestamp, TopicPartition
from kohort.protocol.errors import KafkaError

log = logging.getLogger("kohort.client.consumer")


class RunningConsumer:
    """A consumer between start and close.

    Args:
        cluster: started; not closed here.
        group: the member's settings; None without a group.
        key_deserializer, value_deserializer: see `Consumer`.

    Attributes:
        by_hand: whether partitions are assigned by hand, not by the group.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        group: MembershipSettings | None,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
    ) -> None:
        self.cluster = cluster
        self._settings = settings
        policy = settings.auto_offset_reset
        self.partitions = ConsumedPartitions(
            settings.fetch.max_partition_fetch_bytes, lambda: policy.resolve(time.time_ns() // 1_000_000)
        )
        self.offsets = LogOffsets(cluster, committed=settings.fetch.committed)
        self.collector = FetchCollector(
            self.partitions,
            key_deserializer,
            value_deserializer,
            self._on_poll,
            lambda: self.fetchers.room_made(),
            self._on_piece_done,
        )
        self.fetchers = Fetchers(
            cluster, self.partitions, settings.fetch, self.collector.wake, lambda: self._positions.wake()
        )
        self.rebalancing = RebalanceHandler(self, settings.max_poll_interval_ms)
        self.connector = None if group is None else CoordinatorConnector(cluster, group, self.rebalancing)
        self.commits = (
            None
            if self.connector is None
            else Commits(
                self.connector,
                self.partitions,
                self.collector,
                interval_ms=settings.auto_commit_interval_ms,
                timeout_ms=settings.default_api_timeout_ms,
            )
        )
        self._positions = Positions(
            cluster,
            self.partitions,
            self.offsets,
            None if self.connector is None else self.connector.committed,
            self._on_positions,
            self.failed,
        )
        self.by_hand = False
        self._failure: Exception | None = None
        self._creating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self.connector is not None:
            await self.connector.start()

    async def close(self, timeout_ms: float) -> None:
        """Commits what was given (with auto commit), leaves the group, and stops everything."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        self.collector.close()
        try:
            if self.commits is not None:
                await self.commits.close(timeout_ms / 2)
            if self.connector is not None:
                left_ms = (deadline - asyncio.get_running_loop().time()) * 1000
                await self.connector.close(timeout_ms=max(1, int(left_ms)))
        finally:
            if self.connector is not None:
                await self.connector.close(leave=False, timeout_ms=1)  # if cancelled: no time to leave
            await self._positions.close()
            await self.fetchers.close()
            if self._creating is not None:
                self._creating.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._creating

    # The assignment.

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Reads these partitions and no others, without the group."""
        # Partitions that are still being revoked after the subscription's end don't count.
        self.drop(self.partitions.by_name.keys() - (set(partitions) if self.by_hand else set()))
        self.by_hand = bool(partitions)
        topics = {partition.topic for partition in partitions}
        self.cluster.follow(topics)
        self.create(topics)
        self.partitions.add(partitions, FetchState.AWAIT_COMMITTED)
        self.update()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        for name in partitions:
            if partition := self.partitions.by_name.get(name):
                self.collector.forget(partition)
        self.partitions.remove(partitions)
        self.fetchers.update()

    def hold(self) -> None:
        """Stops fetching all partitions, which are about to be revoked."""
        self.collector.take_back(None)
        self.partitions.hold(self.partitions.by_name)

    def create(self, topics: Collection[str]) -> None:
        """Lets the broker create missing topics, if `allow_auto_create_topics` and its own settings say so."""
        if self._settings.allow_auto_create_topics and topics - self.cluster.info.topics.keys():
            before = self._creating

            async def work() -> None:
                if before is not None:
                    await before
                for name in sorted(topics):
                    try:
                        await self.cluster.topic(name, create=True)
                    except (KafkaError, ClientError) as error:
                        log.info("topic %r: %s", name, error)

            self._creating = asyncio.create_task(work(), name="kohort-create-topics")

    def update(self) -> None:
        """Assignment or positions have changed: wakes the parts that act on it."""
        self.fetchers.update()
        self._positions.wake()
        self.collector.wake()

    def resume_fetching(self) -> None:
        """Fetches again after `suspend`, or with other partitions."""
        self.fetchers.resume()
        self.update()

    def suspend(self) -> None:
        """Stops fetching, and clears the queues, until `resume_fetching`."""
        self.collector.take_back(None)
        self.fetchers.suspend()
        for partition in self.partitions:
            if partition.queue:
                self.partitions.rewind(partition)

    # Positions.

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        found = self.partitions[partition]
        self.collector.forget(found)
        self.partitions.seek(found, offset, epoch)
        self.update()

    def pause(self, partition: TopicPartition) -> None:
        found = self.partitions[partition]
        self.collector.take_back(found)
        self.partitions.pause(found)
        self.fetchers.update()

    def resume(self, partition: TopicPartition) -> None:
        self.partitions.resume(self.partitions[partition])
        self.update()

    async def find(
        self, times: Mapping[TopicPartition, int], *, committed: bool | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return await self.offsets.find(times, timeout_ms=self._settings.default_api_timeout_ms, committed=committed)

    async def ends(
        self, partitions: Iterable[TopicPartition], which: int, *, committed: bool | None = None
    ) -> dict[TopicPartition, int]:
        """Returns where logs end, or (`EARLIEST`) begin."""
        found = await self.find(dict.fromkeys(partitions, which), committed=committed)
        return {partition: place.offset for partition, place in found.items() if place is not None}

    async def seek_to(self, times: Mapping[TopicPartition, int]) -> None:
        """Moves to a time, else to the log's end."""
        for partition in times:
            self.partitions[partition]  # raises if it isn't assigned
        found = await self.find(times)
        ends = await self.ends([partition for partition, place in found.items() if place is None], LATEST)
        for partition, place in found.items():
            if partition in self.partitions.by_name:
                self.seek(partition, ends[partition] if place is None else place.offset)

    # For the parts.

    def failed(self, error: Exception) -> None:
        """Raises this where the user polls."""
        self._failure = error
        self.collector.wake()

    def _on_poll(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.connector is not None:
            if self.connector.failed is not None:
                raise self.connector.failed
            self.connector.polled()
        if not self.rebalancing.subscription and not self.partitions.by_name:
            raise ClientError("there's nothing to read: subscribe to topics, or assign partitions, first")

    def _on_piece_done(self, partition: ConsumedPartition) -> None:
        if not partition.queue and partition.state is not FetchState.FETCHING:
            self._positions.wake()  # a lookup has waited for this

    def _on_positions(self) -> None:
        self.fetchers.update()
        self.collector.wake()
