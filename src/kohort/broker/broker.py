"""The broker: everything but the sockets."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from kohort.broker.admin.replica_assignment import check_replication
from kohort.broker.authorizer import Authorizer
from kohort.broker.client_telemetry import ClientTelemetry
from kohort.broker.config import Settings
from kohort.broker.fetch_sessions import FetchSessions
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.log_manager import LogManager
from kohort.broker.metadata_log import MetadataLog
from kohort.broker.metrics import Metrics
from kohort.broker.periodic_tasks import PeriodicTasks
from kohort.broker.timers import EventLoopTimingWheel
from kohort.broker.topics import ConfigResource, Partition, Topic, Topics
from kohort.broker.transaction_coordinator import TransactionCoordinator
from kohort.coordinator.purgatory import Purgatory
from kohort.log.log import Log
from kohort.protocol.errors import KafkaError
from kohort.protocol.stored import OFFSETS_TOPIC, TRANSACTION_TOPIC

log = logging.getLogger("kohort.broker")


def now_ms() -> int:
    return time.time_ns() // 1_000_000  # since 1970


class Broker:
    """One node: the leader of every partition, the coordinator of every group and transaction, and the controller.

    Args:
        data_dir: the data directory; created if it doesn't exist.
        durable: whether appends are synced to the disk before they are acknowledged.
        authorizer: decides which operations are allowed; None allows all.

    Raises:
        OSError: the directory can't be used, or another server uses it.
        ConfigError: the directory belongs to another node.
    """

    def __init__(
        self, settings: Settings, *, data_dir: Path, durable: bool = False, authorizer: Authorizer | None = None
    ) -> None:
        self._base = settings
        self.config = settings
        self.durable = durable
        self.authorizer = authorizer
        self.node_id = settings.int("node.id")
        self.rack = settings.text("broker.rack") or None
        self.fetch_max_bytes = settings.int("fetch.max.bytes")
        self.host = ""
        self.port = 0
        self.now = now_ms
        self._random = random.SystemRandom()
        self.metrics = Metrics(self)
        self.log_manager = LogManager(
            data_dir, self.node_id, durable=durable, settings=lambda: self.config, clock=now_ms
        )
        self.cluster_id = self.log_manager.cluster_id
        self.wheel = EventLoopTimingWheel(now_ms, self._drain_coordinators)
        self.fetches = Purgatory("fetch", self.wheel)
        self.flusher = LogFlusher(durable, self._high_watermark_advanced)
        self._metadata = MetadataLog(self.log_manager.open_metadata(), now_ms, durable)
        self.topics = Topics(self.node_id, self.log_manager, self._metadata.append, uuid.uuid4, self._config_changed)
        self.topics.on_created.append(lambda topic: self.groups.topic_changed(topic.name))
        self.topics.on_deleted.append(self._topic_deleted)
        self.fetch_sessions = FetchSessions(
            settings.int("max.incremental.fetch.session.cache.slots"), lambda: self._random.randrange(1, 2**31)
        )
        self.client_telemetry = ClientTelemetry(
            self._client_metrics_subscriptions, settings.int("telemetry.max.bytes"), uuid.uuid4
        )
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self._periodic_tasks = PeriodicTasks(self)

    def new_member_id(self, name: str) -> str:
        """A member id as Kafka makes them: `name`, a dash, and a random UUID."""
        return f"{name}-{uuid.uuid4()}"

    def create_topic(self, name: str) -> Topic:
        """Creates a topic with the broker's defaults, for auto.create.topics.enable.

        Raises:
            KafkaError: as `Topics.create`.
        """
        if name == OFFSETS_TOPIC:
            self.groups.start()
        elif name == TRANSACTION_TOPIC:
            self.transactions.start()
        else:
            check_replication(self.config.int("default.replication.factor"))
            self.topics.create(name, self.config.int("num.partitions"))
            log.info("topic created on demand topic=%s", name)
        topic = self.topics.get(name)
        assert topic is not None
        return topic

    def end_transaction(
        self,
        partition: Partition,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now: int,
        safe: Callable[[], None],
        failed: Callable[[KafkaError], None],
    ) -> None:
        """Writes the marker that ends a producer's transaction in a partition.

        Offsets that were committed in the transaction count from then on. Calls `safe`, now or later, once the marker
        is safe (`LogFlusher`), or `failed` if that is impossible.

        Raises:
            KafkaError: the partition's log refuses the marker.
        """
        partition.log.append_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now=now,
            transaction_version=transaction_version,
        )
        if partition.topic.name == OFFSETS_TOPIC:
            self.groups.transaction_ended(partition.index, producer_id, producer_epoch, commit)
        self.flusher.when_safe(partition.log, safe, failed)

    # Start and stop

    async def start(self) -> None:
        """Replays the metadata log, opens all logs, and starts the coordinators and periodic tasks."""
        for record in self._metadata.records():
            self.topics.replay(record)
        self._config_changed(ConfigResource.BROKER, "")
        self.topics.open_all()
        self.log_manager.set_aside_strays(self.topics)
        self.wheel.start(asyncio.get_running_loop())
        self.transactions.resume()
        self.groups.resume()
        self._periodic_tasks.start()

    async def stop(self) -> None:
        """Flushes and closes everything. Connections must be closed before."""
        await self._periodic_tasks.stop()
        await self.groups.stop()
        await self.transactions.stop()
        self.wheel.stop()
        await self.flusher.close()
        # In a thread, as it may take long, and a second signal must still be handled.
        logs = self.log_manager.logs(self.topics)
        await asyncio.get_running_loop().run_in_executor(None, self.log_manager.close, logs)

    # Events

    def _drain_coordinators(self) -> None:
        self.groups.drain()
        self.transactions.drain()

    def _high_watermark_advanced(self, logged: Log) -> None:
        self.fetches.check_and_complete(logged)

    def _topic_deleted(self, topic: Topic) -> None:
        for partition in topic.partitions:
            self.fetches.check_and_complete(partition.log)
        self.groups.topic_deleted(topic.name)

    def _client_metrics_subscriptions(self) -> list[dict[str, str]]:
        kind = ConfigResource.CLIENT_METRICS
        return [self.topics.configs(kind, name) for name in self.topics.config_names(kind)]

    def _config_changed(self, kind: ConfigResource, name: str) -> None:
        if kind is ConfigResource.BROKER:
            self.config = self._base.with_dynamic(
                self.topics.configs(ConfigResource.BROKER, ""),
                self.topics.configs(ConfigResource.BROKER, str(self.node_id)),
            )
            self.fetch_max_bytes = self.config.int("fetch.max.bytes")
            for topic in self.topics:
                self.log_manager.configure(topic)
        self.groups.config_changed(kind, name)
