"""The composition root: builds the broker's components in their order, and connects them."""

from __future__ import annotations

import asyncio
import functools
import random
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kohort.broker.access_rules import configured_rules
from kohort.broker.audit import Audit
from kohort.broker.authorizer import Authorizer
from kohort.broker.auto_topic_creation import AutoTopicCreation
from kohort.broker.bound import Bound
from kohort.broker.client_quotas import ClientQuotas
from kohort.broker.client_telemetry import ClientTelemetry
from kohort.broker.clock import now_ms
from kohort.broker.components import BrokerComponents
from kohort.broker.config import Settings
from kohort.broker.coordinator_runtime import CoordinatorEnvironment, CoordinatorRuntime
from kohort.broker.delegation_tokens import DelegationTokens
from kohort.broker.descriptors import most_connections
from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.features import Features
from kohort.broker.fetch_sessions import FetchSessions
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.log_manager import LogManager
from kohort.broker.metadata_log import MetadataLog
from kohort.broker.metrics import Disk, Metrics, MetricSources
from kohort.broker.periodic_tasks import PeriodicTask, PeriodicTasks
from kohort.broker.scram_users import ScramUsers
from kohort.broker.scrubber import FIRST_SCRUB_MS, LONGEST_SCRUB_INTERVAL_MS, Scrubber
from kohort.broker.share.dead_letters import DeadLetterQueue
from kohort.broker.share.group_configs import DEAD_LETTERS, ShareGroupConfigs
from kohort.broker.share.offset_reset import StartOffsets
from kohort.broker.share.partitions import SharePartitions
from kohort.broker.share.sessions import ShareSessions
from kohort.broker.share_coordinator import ShareCoordinator
from kohort.broker.share_group_states import ShareGroupStates
from kohort.broker.streams.placer import Placer
from kohort.broker.throttling import Throttling
from kohort.broker.timers import EventLoopTimingWheel
from kohort.broker.topics import ConfigResource, Topic, Topics
from kohort.broker.transaction_coordinator import TransactionCoordinator
from kohort.broker.transaction_markers import TransactionMarkers
from kohort.broker.turns import Line, Turns
from kohort.coordinator.purgatory import Purgatory
from kohort.log import Log

EXPANSIONS_AT_ONCE: Final = 1
"""Batches that expand to much, and are decompressed and checked at a time: each may take 256 MB."""


WAITING_PARTITIONS: Final = 500_000
"""Partitions of fetches that wait, some 200 MB."""


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Broker(BrokerComponents):
    """One node: the leader of every partition, the coordinator of every group and transaction, and the controller.

    Everything but the sockets. Made by `Broker.build`.
    """

    metadata_log: MetadataLog
    wheel: EventLoopTimingWheel
    coordinators: tuple[CoordinatorRuntime[Any], ...]
    periodic_tasks: PeriodicTasks
    scrubber: Scrubber
    metric_sources: MetricSources

    @classmethod
    def build(
        cls,
        settings: Settings,
        *,
        data_dir: Path,
        durable: bool = False,
        authorizer: Authorizer | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> Broker:
        """Builds a broker from its data directory, which is created if it doesn't exist.

        Args:
            durable: whether appends are synced to the disk before they are acknowledged.
            authorizer: decides which operations are allowed; None: the configured one, and without one all are.
            clock: ms since 1970.

        Raises:
            OSError: the directory can't be used, or another server uses it.
            ConfigError: the directory belongs to another node.
        """
        node_id = settings.int("node.id")
        metrics = Metrics()
        audit = Audit()
        log_manager = LogManager(
            data_dir, node_id, durable=durable, settings=settings, clock=clock, report=metrics.damaged
        )
        metadata_log = MetadataLog(log_manager.metadata, clock, durable)
        topics = Topics(node_id, log_manager, metadata_log.append, uuid.uuid4)
        features = Features(metadata_log.append)
        client_quotas = ClientQuotas(metadata_log.append)
        throttling = Throttling(client_quotas, settings, _monotonic_ms)
        scram_users = ScramUsers(metadata_log.append)
        delegation_tokens = DelegationTokens(settings, metadata_log.append, uuid.uuid4)
        access_rules = None if authorizer else configured_rules(settings, metadata_log.append, uuid.uuid4)
        if access_rules is not None:
            authorizer = access_rules.authorizer
        config = DynamicConfig(settings, topics)
        wheel = EventLoopTimingWheel(clock)
        turns = Turns()
        expansions = Line(EXPANSIONS_AT_ONCE)
        fetches = Purgatory("fetch", wheel)
        waiting_fetches = [fetches]
        flusher = LogFlusher(durable, functools.partial(_check_fetches, waiting_fetches))
        fetch_sessions = FetchSessions(
            settings.int("max.incremental.fetch.session.cache.slots"),
            functools.partial(random.SystemRandom().randrange, 1, 2**31),
        )
        client_telemetry = ClientTelemetry(
            functools.partial(topics.all_configs, ConfigResource.CLIENT_METRICS),
            settings.int("telemetry.max.bytes"),
            uuid.uuid4,
        )

        environment = CoordinatorEnvironment(topics, flusher, wheel, config, features, clock)
        placer = Placer()
        groups = GroupCoordinator(environment, placer, authorizer)
        transaction_markers = TransactionMarkers(flusher, groups)
        transactions = TransactionCoordinator(environment, transaction_markers)
        share_state = ShareCoordinator(environment)
        share_group_states = ShareGroupStates(groups, share_state, topics)
        coordinators = (groups, transactions, share_state)

        shares = SharePartitions(
            share_state,
            StartOffsets(turns, expansions),
            ShareSessions(settings.int("group.share.max.share.sessions")),
            ShareGroupConfigs(settings, topics, lambda: features.level("share.version") >= DEAD_LETTERS),
            DeadLetterQueue(topics, config, flusher, clock),
            wheel,
            clock,
        )
        waiting_fetches.append(shares.fetches)

        # Events: who hears what of whom.
        topics.on_created.append(groups.topic_created)
        topics.on_deleted.append(functools.partial(_complete_fetches, fetches))
        topics.on_deleted.append(groups.topic_deleted)
        topics.on_deleted.append(shares.evict_topic)
        topics.on_deleted.append(share_state.topic_deleted)
        topics.on_config_changed.append(config.config_changed)
        topics.on_config_changed.append(client_telemetry.config_changed)
        topics.on_config_changed.append(groups.config_changed)
        topics.on_config_changed.append(shares.config_changed)
        config.on_changed.append(shares.configure)
        config.on_changed.append(functools.partial(log_manager.reconfigure, topics))
        config.on_changed.append(groups.reconfigure)
        placer.on_placed.append(groups.placed)
        groups.on_share_member_fenced.append(shares.release)
        share_group_states.on_reset.append(shares.evict_partition)
        share_group_states.on_deleted.append(shares.evict)
        for coordinator in coordinators:
            wheel.on_advanced.append(coordinator.drain)

        scrubber = Scrubber(topics, log_manager)

        return cls(
            node_id=node_id,
            rack=settings.text("broker.rack") or None,
            cluster_id=log_manager.cluster_id,
            authorizer=authorizer,
            access_rules=access_rules,
            fetch_max_bytes=settings.int("fetch.max.bytes"),
            dynamic_config=config,
            features=features,
            metrics=metrics,
            audit=audit,
            log_manager=log_manager,
            topics=topics,
            flusher=flusher,
            fetches=fetches,
            waiting_partitions=Bound(WAITING_PARTITIONS),
            turns=turns,
            expansions=expansions,
            fetch_sessions=fetch_sessions,
            client_quotas=client_quotas,
            throttling=throttling,
            scram_users=scram_users,
            delegation_tokens=delegation_tokens,
            client_telemetry=client_telemetry,
            groups=groups,
            transactions=transactions,
            share_state=share_state,
            share_group_states=share_group_states,
            shares=shares,
            transaction_markers=transaction_markers,
            auto_topic_creation=AutoTopicCreation(topics, config, coordinators),
            metadata_log=metadata_log,
            wheel=wheel,
            coordinators=coordinators,
            scrubber=scrubber,
            periodic_tasks=PeriodicTasks(
                topics,
                log_manager,
                flusher,
                config,
                clock,
                [
                    PeriodicTask(scrubber.scrub, "log.scrub.interval.ms", LONGEST_SCRUB_INTERVAL_MS, FIRST_SCRUB_MS),
                    PeriodicTask(
                        functools.partial(_sweep, delegation_tokens, clock), "delegation.token.expiry.check.interval.ms"
                    ),
                    *(task for coordinator in coordinators for task in coordinator.periodic_tasks()),
                ],
                [coordinator.partition_regained for coordinator in coordinators],
            ),
            metric_sources=MetricSources(
                counters=metrics,
                topics=lambda: topics,
                group_shards=groups.active,
                share_state_shards=share_state.active,
                shares=shares,
                coordinators_loading=[coordinator.loading for coordinator in coordinators],
                placements=placer,
                throttling=throttling,
                audit=audit,
                delayed_fetches=lambda: fetches.delayed,
                fetch_sessions=lambda: len(fetch_sessions),
                timers=lambda: len(wheel),
                disk=functools.partial(_disk, data_dir),
                connections_limit=lambda: most_connections(config.current.int("max.connections")),
            ),
        )

    async def start(self) -> None:
        """Replays the metadata log, opens all logs, and starts the coordinators and periodic tasks."""
        for record in self.metadata_log.records():
            self.topics.replay(record)
            self.features.replay(record)
            self.client_quotas.replay(record)
            self.scram_users.replay(record)
            self.delegation_tokens.replay(record)
            if self.access_rules is not None:
                self.access_rules.replay(record)
        self.dynamic_config.update()
        self.topics.open_all()
        self.log_manager.set_aside_strays(self.topics)
        self.wheel.start(asyncio.get_running_loop())
        for coordinator in reversed(self.coordinators):
            coordinator.resume()
        self.periodic_tasks.start()

    async def catch_up(self) -> None:
        """Does at once what has become due since the clock was moved: timers first, then periodic tasks, once each."""
        self.wheel.catch_up()
        await self.periodic_tasks.catch_up()

    async def stop(self) -> None:
        """Flushes and closes everything. Connections must be closed before."""
        self.scrubber.stop()
        await self.periodic_tasks.stop()
        for coordinator in self.coordinators:
            await coordinator.stop()
        self.wheel.stop()
        await self.flusher.close()
        # In a thread, as it may take long, and a second signal must still be handled.
        logs = self.log_manager.logs(self.topics)
        await asyncio.get_running_loop().run_in_executor(None, self.log_manager.close, logs)


def _disk(directory: Path) -> Disk:
    usage = shutil.disk_usage(directory)
    return Disk(usage.total, usage.free)


async def _sweep(tokens: DelegationTokens, clock: Callable[[], int]) -> None:
    """Removes expired delegation tokens."""
    tokens.sweep(clock())


def _check_fetches(purgatories: Sequence[Purgatory], log: Log) -> None:
    """Lets the fetches look that wait for data of a log."""
    for purgatory in purgatories:
        purgatory.check_and_complete(log)


def _complete_fetches(fetches: Purgatory, topic: Topic) -> None:
    """Completes the fetches that wait for data of a topic."""
    for partition in topic.partitions:
        fetches.check_and_complete(partition.log)
