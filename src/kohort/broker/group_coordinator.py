"""The group coordinator: its shards in `__consumer_offsets`, and what spans several of them."""

from __future__ import annotations

import asyncio
import base64
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from kohort.broker.authorizer import Authorizer
from kohort.broker.cluster import BrokerCluster
from kohort.broker.config import Settings
from kohort.broker.config.component_settings import consumer_settings, group_settings, share_settings, streams_settings
from kohort.broker.coordinator_runtime import CoordinatorEnvironment, CoordinatorRuntime, ShardState
from kohort.broker.group_configs import GroupConfigs
from kohort.broker.periodic_tasks import PeriodicTask
from kohort.broker.regex_resolver import RegexResolver, Resolved
from kohort.broker.session import Session
from kohort.broker.streams.internal_topics import InternalTopics
from kohort.broker.streams.placer import Placer
from kohort.broker.topics import ConfigResource, Topic
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.placement.model import Placement
from kohort.coordinator.shard import GroupShard, value_version
from kohort.coordinator.share.environment import ShareEnvironment
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.protocol.errors import KafkaError, shown
from kohort.protocol.message import Data
from kohort.protocol.stored import OFFSETS_TOPIC

LARGEST_STEP: Final = 8 * 1024 * 1024
"""Bytes of the records of one step: they are one batch."""

_FEATURES: Final = {"consumer": "group.version", "share": "share.version", "streams": "streams.version"}
"""The feature of each kind of groups that has one."""

log = logging.getLogger("kohort.broker.group_coordinator")


class GroupCoordinator(CoordinatorRuntime[GroupShard]):
    """Runs the shards of the group coordinator.

    Attributes:
        cluster: the topics as groups see them.
        on_share_member_fenced: called with group and member id when a member of a share group was fenced.
    """

    def __init__(
        self, environment: CoordinatorEnvironment, placer: Placer, authorizer: Authorizer | None = None
    ) -> None:
        config, topics = environment.config.current, environment.topics
        super().__init__(
            environment,
            OFFSETS_TOPIC,
            config.int("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                # A step is one batch: thousands of members, or the offsets of a group that is deleted.
                "max.message.bytes": str(LARGEST_STEP),
                "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
            },
        )
        self._protocols = frozenset(config.names("group.coordinator.rebalance.protocols"))
        self._settings = group_settings(config)
        consumer_configs = GroupConfigs(config, topics, consumer_settings)
        streams_configs = GroupConfigs(config, topics, streams_settings)
        share_configs = GroupConfigs(config, topics, share_settings)
        self._configs_of_groups: tuple[GroupConfigs[Any], ...] = (consumer_configs, streams_configs, share_configs)
        self.internal_topics = InternalTopics(topics, environment.config)
        self.placer = placer
        self.cluster = BrokerCluster(topics)
        self._streams_environment = StreamsEnvironment(streams_configs.of, self.cluster, placer)
        self._resolver = RegexResolver(topics, authorizer)
        self._resolver.on_resolved.append(self._resolved)
        self._consumer_environment = ConsumerEnvironment(consumer_configs.of, self.cluster, self._resolver, _new_uuid)
        self._share_environment = ShareEnvironment(share_configs.of, self.cluster, self._share_member_fenced)
        self.on_share_member_fenced: list[Callable[[str, str], None]] = []
        self._changed_topics: dict[str, None] = {}

    def offered(self, kind: str) -> bool:
        """Whether consumer, share or streams groups are served: they are enabled, and their feature is on.

        Share groups need no entry in group.coordinator.rebalance.protocols, as in Kafka.
        """
        enabled = kind == "share" or kind in self._protocols
        return enabled and self.environment.features.level(_FEATURES[kind]) > 0

    def make(self, partition: int) -> GroupShard:
        return GroupShard(
            partition,
            self._settings,
            self.environment.wheel,
            _new_member_id,
            self._streams_environment,
            self._consumer_environment,
            self._share_environment,
        )

    def _share_member_fenced(self, group_id: str, member_id: str) -> None:
        for callback in self.on_share_member_fenced:
            callback(group_id, member_id)

    def value_version(self, value: Data) -> int:
        """The version that Kafka 4.2 writes."""
        return value_version(value)

    async def stop(self) -> None:
        await super().stop()
        self.internal_topics.stop()
        self.placer.stop()
        self._resolver.stop()

    def config_changed(self, kind: ConfigResource, name: str) -> None:
        if kind is ConfigResource.GROUP:
            for configs in self._configs_of_groups:
                configs.configure_group(name)
            self.each(lambda shard: shard.settings_changed(name))

    def reconfigure(self, settings: Settings) -> None:
        """Applies a new broker configuration."""
        for configs in self._configs_of_groups:
            configs.configure(settings)
        self.each(GroupShard.settings_changed)

    # Transactions

    def replay_marker(self, shard: GroupShard, producer_id: int, producer_epoch: int, commit: bool) -> None:
        shard.replay_marker(producer_id, producer_epoch, commit)

    def transaction_ended(self, partition: int, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Replays a marker that was written to the topic. A shard that is loading reads it from the log."""
        if partition < len(self._entries) and self._entries[partition].state is ShardState.ACTIVE:
            self.replay_marker(self._entries[partition].shard, producer_id, producer_epoch, commit)

    # Topics

    def topic_created(self, topic: Topic) -> None:
        self._topic_changed(topic)

    def topic_deleted(self, topic: Topic) -> None:
        """Deletes the offsets that were committed for a topic, and what share groups know of it."""
        self.each(lambda shard: shard.offsets.delete_topic(topic.name))
        self.each(lambda shard: shard.share.topic_deleted(topic.id))
        self._topic_changed(topic)

    def _topic_changed(self, topic: Topic) -> None:
        """Notifies groups, once for all topics that are created, grown or deleted in this turn of the loop."""
        if topic.internal or not any(shard.depends_on_topics() for shard in self.active()):
            return
        if not self._changed_topics:
            asyncio.get_running_loop().call_soon(self._notify_of_topics)
        self._changed_topics[topic.name] = None

    def _notify_of_topics(self) -> None:
        names, self._changed_topics = self._changed_topics, {}
        self.each(lambda shard: shard.topics_changed(names))

    # Regular expressions

    def _resolved(self, job: RegexJob, topics: Resolved | None) -> None:
        """Takes the topics of a group's regular expressions; None if that failed."""
        try:
            entry = self.entry(job.group_id)
        except KafkaError as error:
            log.warning("regular expressions are dropped group=%s error=%s", shown(job.group_id), error)
            return
        self.perform(entry, entry.shard.consumer.resolved(job, topics))

    # Placement of tasks

    def placed(self, job: PlacementJob, placement: Placement | None) -> None:
        """Takes a placement that comes later; None if it failed."""
        try:
            entry = self.entry(job.group_id)
        except KafkaError as error:
            log.warning("a placement is dropped group=%s error=%s", shown(job.group_id), error)
            return
        self.perform(entry, entry.shard.streams.placed(job, placement, self._clock()))

    # Connections of members

    def heard_over(self, session: Session, group_id: str, member_id: str, disconnect_timeout_ms: int) -> None:
        """A member of a streams group was heard over a connection, and has to come back if that breaks."""
        streams = self.entry(group_id).shard.streams
        streams.heard_over(session, group_id, member_id, disconnect_timeout_ms)
        if session.gone:  # before its heartbeat was answered
            streams.disconnected(session, self._clock())

    def disconnected(self, session: Session) -> None:
        """A connection is broken, by the client or on the way."""
        now = self._clock()
        for shard in self.active():
            shard.streams.disconnected(session, now)

    def closed(self, session: Session) -> None:
        """A connection is closed, whoever did it."""
        for shard in self.active():
            shard.streams.closed(session)

    def forget_connections(self) -> None:
        """The server stops, and breaks all connections itself."""
        for shard in self.active():
            shard.streams.forget_connections()

    # Expiry

    def periodic_tasks(self) -> Sequence[PeriodicTask]:
        return (PeriodicTask(self.expire_offsets, "offsets.retention.check.interval.ms"),)

    async def expire_offsets(self) -> None:
        """Expires offsets by `offsets.retention.minutes`."""
        now = self._clock()
        self.each(lambda shard: shard.offsets.expire(now))


def _new_uuid() -> str:
    """A member id as Kafka makes them for members of consumer groups: 22 characters of base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _new_member_id(name: str) -> str:
    """A member id as Kafka makes them: `name`, a dash, and a random UUID."""
    return f"{name}-{uuid.uuid4()}"
