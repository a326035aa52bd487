"""Topologies as messages and records have them: copartition groups name their topics by position there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from kohort.protocol.messages import streams_group_describe as describe
from kohort.protocol.messages import streams_group_heartbeat as heartbeat
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.protocol.stored import streams_group_topology as stored
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyValue
from kohort.streams.topology import InternalTopic, Subtopology, Topology

_Message: TypeAlias = StreamsGroupHeartbeatRequest.Topology | StreamsGroupTopologyValue
_SubtopologyMessage: TypeAlias = (
    StreamsGroupHeartbeatRequest.Topology.Subtopology | StreamsGroupTopologyValue.Subtopology
)


class _TopicInfo(Protocol):
    """An internal topic, as messages and records have it."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: list[Any]


def topology_of(message: _Message) -> Topology:
    """Returns the topology of a record, or of a heartbeat that the coordinator's `check_topology` accepts."""
    return Topology({part.subtopology_id: _subtopology(part) for part in message.subtopologies}, message.epoch)


def topology_request(topology: Topology) -> StreamsGroupHeartbeatRequest.Topology:
    """Returns the topology for the heartbeat of a joining member."""
    message = StreamsGroupHeartbeatRequest.Topology
    return message(
        epoch=topology.epoch, subtopologies=_parts(topology, message, heartbeat.TopicInfo, heartbeat.KeyValue)
    )


def topology_record(topology: Topology) -> StreamsGroupTopologyValue:
    """Returns what is stored of a topology; equal topologies give equal records."""
    message = StreamsGroupTopologyValue
    return message(epoch=topology.epoch, subtopologies=_parts(topology, message, stored.TopicInfo, stored.TopicConfig))


def described_topics(topics: Iterable[InternalTopic]) -> list[describe.TopicInfo]:
    """Returns internal topics for StreamsGroupDescribe."""
    return _topic_infos(topics, describe.TopicInfo, describe.KeyValue)


def internal_topics(topics: Iterable[_TopicInfo]) -> tuple[InternalTopic, ...]:
    """Returns the internal topics that a message lists."""
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            max(0, topic.replication_factor),  # Kafka Streams sends -1 for the broker's default, the protocol has 0
            {config.key: config.value for config in topic.topic_configs},
        )
        for topic in topics
    )


def _subtopology(message: _SubtopologyMessage) -> Subtopology:
    repartition = internal_topics(message.repartition_source_topics)
    return Subtopology(
        source_topics=message.source_topics,
        source_patterns=message.source_topic_regex,
        repartition_sources=repartition,
        repartition_sinks=message.repartition_sink_topics,
        changelogs=internal_topics(message.state_changelog_topics),
        copartition_groups=[
            [
                *(message.source_topics[position] for position in group.source_topics),
                *(message.source_topic_regex[position] for position in group.source_topic_regex),
                *(repartition[position].name for position in group.repartition_source_topics),
            ]
            for group in message.copartition_groups
        ],
    )


def _parts(topology: Topology, message: Any, topic_info: Any, config: Any) -> list[Any]:
    """Returns the subtopologies; requests and records have the same fields, of classes of their own."""
    parts = []
    for name, part in topology.subtopologies.items():
        topics, patterns = _numbered(part.source_topics), _numbered(part.source_patterns)
        repartition = _numbered(topic.name for topic in part.repartition_sources)
        parts.append(
            message.Subtopology(
                subtopology_id=name,
                source_topics=part.source_topics,
                source_topic_regex=part.source_patterns,
                state_changelog_topics=_topic_infos(part.changelogs, topic_info, config),
                repartition_sink_topics=part.repartition_sinks,
                repartition_source_topics=_topic_infos(part.repartition_sources, topic_info, config),
                copartition_groups=[
                    message.Subtopology.CopartitionGroup(
                        source_topics=_positions(group, topics),
                        source_topic_regex=_positions(group, patterns),
                        repartition_source_topics=_positions(group, repartition),
                    )
                    for group in part.copartition_groups
                ],
            )
        )
    return parts


def _topic_infos(topics: Iterable[InternalTopic], topic_info: Any, config: Any) -> list[Any]:
    return [
        topic_info(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[config(key=key, value=value) for key, value in sorted(topic.configs.items())],
        )
        for topic in topics
    ]


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: position for position, name in enumerate(names)}


def _positions(group: Collection[str], numbered: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(numbered[name] for name in group if name in numbered))
