"""What a streams application consists of: its subtopologies, and the topics that they read, write and keep state in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.protocol.messages.streams_group_heartbeat import TopicInfo as RequestedTopic
from kohort.protocol.stored import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyValue, TopicConfig, TopicInfo

__all__ = ["KAFKA_TOPICS", "CopartitionGroup", "InternalTopic", "Subtopology", "Topology"]

KAFKA_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
"""Topics that Kafka keeps its own state in, which no application may use."""

_Told: TypeAlias = StreamsGroupHeartbeatRequest.Topology | StreamsGroupTopologyValue
_ToldSubtopology: TypeAlias = StreamsGroupHeartbeatRequest.Topology.Subtopology | StreamsGroupTopologyValue.Subtopology


@dataclass(frozen=True, slots=True, order=True)
class InternalTopic:
    """A topic that the application needs and the broker creates.

    Attributes:
        name: its name.
        partitions: how many; 0 in a topology that leaves it to the broker, as for every changelog.
        replication_factor: replicas of each partition; None for the broker's default.
        configs: settings to create it with, sorted by key.
    """

    name: str
    partitions: int = 0
    replication_factor: int | None = None
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Sources of one subtopology that must have equally many partitions.

    Attributes:
        topics: names of source and repartition topics, sorted.
        patterns: source patterns, all of whose topics belong to the group, sorted.
    """

    topics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of the topology that runs as one task a partition. All collections are sorted.

    Attributes:
        id: its name.
        source_topics: topics it reads that somebody else created.
        source_patterns: regular expressions for names of such topics.
        repartition_sinks: names of repartition topics it writes.
        repartition_sources: repartition topics it reads.
        changelogs: topics that its state stores are kept in, one a store.
        copartition_groups: which of its sources must be partitioned alike.
    """

    id: str
    source_topics: tuple[str, ...] = ()
    source_patterns: tuple[str, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


@dataclass(frozen=True)
class Topology:
    """An application's topology. Two are equal if they say the same, in whatever order they were told.

    Attributes:
        epoch: its version.
        subtopologies: by id, in the order of ids.
    """

    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @classmethod
    def told(cls, topology: _Told) -> Topology:
        """The topology of a heartbeat that `check_topology` accepts, or of a record."""
        subtopologies = (_read(subtopology) for subtopology in topology.subtopologies)
        return cls(topology.epoch, {subtopology.id: subtopology for subtopology in sorted(subtopologies, key=_id)})

    def record(self) -> StreamsGroupTopologyValue:
        """What is stored of it; equal topologies give equal records."""
        return StreamsGroupTopologyValue(
            epoch=self.epoch, subtopologies=[_write(subtopology) for subtopology in self.subtopologies.values()]
        )

    @cached_property
    def source_topics(self) -> frozenset[str]:
        """Names of all topics that it reads, repartition topics included; patterns aren't resolved."""
        repartition = (topic.name for subtopology in self._all for topic in subtopology.repartition_sources)
        return frozenset(name for subtopology in self._all for name in subtopology.source_topics).union(repartition)

    @cached_property
    def internal_topics(self) -> frozenset[str]:
        """Names of the repartition topics and changelogs; a changelog that is somebody else's topic isn't one."""
        named = {name for subtopology in self._all for name in subtopology.source_topics}
        return frozenset(
            topic.name
            for subtopology in self._all
            for topic in (*subtopology.repartition_sources, *subtopology.changelogs)
            if topic.name not in named
        )

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """Names of all topics that it reads or keeps state in; who joins has to be allowed to see them."""
        return self.source_topics | self.internal_topics

    @cached_property
    def source_patterns(self) -> frozenset[str]:
        """The regular expressions of all subtopologies."""
        return frozenset(pattern for subtopology in self._all for pattern in subtopology.source_patterns)

    @property
    def _all(self) -> tuple[Subtopology, ...]:
        return tuple(self.subtopologies.values())


def _id(subtopology: Subtopology) -> str:
    return subtopology.id


def _read(told: _ToldSubtopology) -> Subtopology:
    groups = [
        CopartitionGroup(
            topics=tuple(
                sorted(
                    {told.source_topics[position] for position in group.source_topics}
                    | {told.repartition_source_topics[position].name for position in group.repartition_source_topics}
                )
            ),
            patterns=tuple(sorted({told.source_topic_regex[position] for position in group.source_topic_regex})),
        )
        for group in told.copartition_groups
    ]
    return Subtopology(
        id=told.subtopology_id,
        source_topics=tuple(sorted(told.source_topics)),
        source_patterns=tuple(sorted(told.source_topic_regex)),
        repartition_sinks=tuple(sorted(told.repartition_sink_topics)),
        repartition_sources=tuple(sorted(map(_read_topic, told.repartition_source_topics))),
        changelogs=tuple(sorted(map(_read_topic, told.state_changelog_topics))),
        copartition_groups=tuple(sorted(groups, key=lambda group: (group.topics, group.patterns))),
    )


def _read_topic(told: RequestedTopic | TopicInfo) -> InternalTopic:
    return InternalTopic(
        name=told.name,
        partitions=told.partitions,
        # Kafka Streams says -1 where it wants the broker's default, the protocol 0.
        replication_factor=told.replication_factor if told.replication_factor > 0 else None,
        configs=tuple(sorted((config.key, config.value) for config in told.topic_configs)),
    )


def _write(subtopology: Subtopology) -> StreamsGroupTopologyValue.Subtopology:
    sources = {name: position for position, name in enumerate(subtopology.source_topics)}
    patterns = {pattern: position for position, pattern in enumerate(subtopology.source_patterns)}
    repartition = {topic.name: position for position, topic in enumerate(subtopology.repartition_sources)}
    return StreamsGroupTopologyValue.Subtopology(
        subtopology_id=subtopology.id,
        source_topics=subtopology.source_topics,
        source_topic_regex=subtopology.source_patterns,
        state_changelog_topics=[_write_topic(topic) for topic in subtopology.changelogs],
        repartition_sink_topics=subtopology.repartition_sinks,
        repartition_source_topics=[_write_topic(topic) for topic in subtopology.repartition_sources],
        copartition_groups=[
            StreamsGroupTopologyValue.Subtopology.CopartitionGroup(
                source_topics=tuple(sources[name] for name in group.topics if name in sources),
                source_topic_regex=tuple(patterns[pattern] for pattern in group.patterns),
                repartition_source_topics=tuple(repartition[name] for name in group.topics if name in repartition),
            )
            for group in subtopology.copartition_groups
        ],
    )


def _write_topic(topic: InternalTopic) -> TopicInfo:
    return TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor or 0,
        topic_configs=[TopicConfig(key=key, value=value) for key, value in topic.configs],
    )
