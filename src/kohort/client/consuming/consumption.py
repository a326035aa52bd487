"""A consumer's parts, put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Iterable, Mapping

from kohort.client.cluster import Cluster
from kohort.client.consuming.commits import Commits
from kohort.client.consuming.decoding import Deserializer
from kohort.client.consuming.delivery import Delivery
from kohort.client.consuming.fetchers import Fetchers
from kohort.client.consuming.offsets import Offsets
from kohort.client.consuming.partitions import LATEST, ConsumedPartition, ConsumedPartitions, Phase
from kohort.client.consuming.positions import Positions
from kohort.client.consuming.rebalance_handler import RebalanceHandler
from kohort.client.consuming.settings import ConsumerSettings
from kohort.client.coordinator_connector import CoordinatorConnector, MembershipSettings
from kohort.client.errors import ClientError
from kohort.client.types import OffsetAndTimestamp, TopicPartition
from kohort.protocol.errors import KafkaError

__all__ = ["Consumption"]

log = logging.getLogger("kohort.client.consumer")


class Consumption:
    """What runs between a consumer's start and its end.

    Args:
        cluster: started; closed by whoever started it.
        settings: the consumer's.
        group: the member's settings; None without a group.
        key_deserializer, value_deserializer: see `Consumer`.

    Attributes:
        by_hand: whether there are partitions, and they aren't the group's to give.
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
        self.offsets = Offsets(cluster, committed=settings.fetch.committed)
        self.delivery = Delivery(
            self.partitions,
            key_deserializer,
            value_deserializer,
            self._asked,
            lambda: self.fetchers.room_made(),
            self._given,
        )
        self.fetchers = Fetchers(
            cluster, self.partitions, settings.fetch, self.delivery.arrived, lambda: self._positions.look_again()
        )
        self.rebalancing = RebalanceHandler(self, settings.max_poll_interval_ms)
        self.connector = None if group is None else CoordinatorConnector(cluster, group, self.rebalancing)
        self.commits = (
            None
            if self.connector is None
            else Commits(
                self.connector,
                self.partitions,
                self.delivery,
                interval_ms=settings.auto_commit_interval_ms,
                timeout_ms=settings.default_api_timeout_ms,
            )
        )
        self._positions = Positions(
            cluster,
            self.partitions,
            self.offsets,
            None if self.connector is None else self.connector.committed,
            self._settled,
            self.failed,
        )
        self.by_hand = False
        self._failure: Exception | None = None
        self._creating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin."""
        if self.connector is not None:
            await self.connector.start()

    async def close(self, timeout_ms: float) -> None:
        """Commit what was given, if that happens by itself, leave the group, stop everything."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        self.delivery.close()
        try:
            if self.commits is not None:
                await self.commits.close(timeout_ms / 2)
            if self.connector is not None:
                left_ms = (deadline - asyncio.get_running_loop().time()) * 1000
                await self.connector.close(timeout_ms=max(1, int(left_ms)))
        finally:
            if self.connector is not None:
                await self.connector.close(leave=False, timeout_ms=1)  # whoever is cancelled has no time to leave
            await self._positions.close()
            await self.fetchers.close()
            if self._creating is not None:
                self._creating.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._creating

    # The assignment.

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions and no others, without being assigned them by the group."""
        # What is still being given back to the group after the subscription's end is none of them.
        self.drop(self.partitions.by_name.keys() - (set(partitions) if self.by_hand else set()))
        self.by_hand = bool(partitions)
        topics = {partition.topic for partition in partitions}
        self.cluster.follow(topics)
        self.create(topics)
        self.partitions.add(partitions, Phase.COMMITTED)
        self.update()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """End with partitions."""
        for name in partitions:
            if partition := self.partitions.by_name.get(name):
                self.delivery.forget(partition)
        self.partitions.remove(partitions)
        self.fetchers.update()

    def hold(self) -> None:
        """Fetch and give nothing more of what is about to go."""
        self.delivery.take_back(None)
        self.partitions.hold(self.partitions.by_name)

    def create(self, topics: Collection[str]) -> None:
        """Have the broker create topics that aren't there, if it and the user want that."""
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
        """Have everybody look at what is to be done now."""
        self.fetchers.update()
        self._positions.look_again()
        self.delivery.arrived()

    def resume_fetching(self) -> None:
        """Go on after `suspend`, or with other partitions."""
        self.fetchers.resume()
        self.update()

    def suspend(self) -> None:
        """Fetch and give nothing, until `resume_fetching`; what is queued is forgotten."""
        self.delivery.take_back(None)
        self.fetchers.suspend()
        for partition in self.partitions:
            if partition.queue:
                self.partitions.rewind(partition)

    # Positions.

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Go on at an offset."""
        found = self.partitions[partition]
        self.delivery.forget(found)
        self.partitions.seek(found, offset, epoch)
        self.update()

    def pause(self, partition: TopicPartition) -> None:
        """Give nothing of it."""
        found = self.partitions[partition]
        self.delivery.take_back(found)
        self.partitions.pause(found)
        self.fetchers.update()

    def resume(self, partition: TopicPartition) -> None:
        """Give its records again."""
        self.partitions.resume(self.partitions[partition])
        self.update()

    async def find(
        self, times: Mapping[TopicPartition, int], *, committed: bool | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset of a time or later; see `Offsets.find`."""
        return await self.offsets.find(times, timeout_ms=self._settings.default_api_timeout_ms, committed=committed)

    async def ends(
        self, partitions: Iterable[TopicPartition], which: int, *, committed: bool | None = None
    ) -> dict[TopicPartition, int]:
        """Where logs end, or (`EARLIEST`) begin."""
        found = await self.find(dict.fromkeys(partitions, which), committed=committed)
        return {partition: place.offset for partition, place in found.items() if place is not None}

    async def seek_to(self, times: Mapping[TopicPartition, int]) -> None:
        """Go on at a time, else at the log's end."""
        for partition in times:
            self.partitions[partition]  # raises if it isn't assigned
        found = await self.find(times)
        ends = await self.ends([partition for partition, place in found.items() if place is None], LATEST)
        for partition, place in found.items():
            if partition in self.partitions.by_name:
                self.seek(partition, ends[partition] if place is None else place.offset)

    # What goes on.

    def failed(self, error: Exception) -> None:
        """Raise this where the user asks for the next record."""
        self._failure = error
        self.delivery.arrived()

    def _asked(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.connector is not None:
            if self.connector.failed is not None:
                raise self.connector.failed
            self.connector.polled()
        if not self.rebalancing.subscription and not self.partitions.by_name:
            raise ClientError("there's nothing to read: subscribe to topics, or assign partitions, first")

    def _given(self, partition: ConsumedPartition) -> None:
        if not partition.queue and partition.phase is not Phase.READY:
            self._positions.look_again()  # which has waited for this

    def _settled(self) -> None:
        self.fetchers.update()
        self.delivery.arrived()
