"""What a streams application is made of, as its members tell the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kohort.client.errors import ConfigError
from kohort.client.types import TopicPartition
from kohort.protocol.messages.streams_group_heartbeat import KeyValue, StreamsGroupHeartbeatRequest
from kohort.protocol.messages.streams_group_heartbeat import TopicInfo as WireTopic
from kohort.streams.tasks import TaskId

__all__ = ["InternalTopic", "Subtopology", "Topology"]

_Wire = StreamsGroupHeartbeatRequest.Topology
_WireSubtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


@dataclass(frozen=True, kw_only=True)
class InternalTopic:
    """A repartition topic or a changelog: the brokers create it when the first member joins.

    Attributes:
        name: by custom "<application id>-<what for>-repartition" or "…-changelog".
        partitions: 0 leaves them to the broker, and is what a changelog must have: it gets one a task.
        replication_factor: 0 for the broker's default.
        configs: the topic's settings, such as `{"cleanup.policy": "compact"}`.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)

    def wire(self) -> WireTopic:
        """As a heartbeat has it."""
        return WireTopic(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in sorted(self.configs.items())],
        )


@dataclass(frozen=True, kw_only=True)
class Subtopology:
    """A part of a topology that runs as one task for each partition of its sources.

    Attributes:
        source_topics: topics that it reads and somebody else creates.
        source_patterns: regular expressions for names of such topics (RE2 syntax). Apache Kafka takes none yet.
        repartition_sources: repartition topics that it reads.
        repartition_sinks: names of repartition topics that it writes; another subtopology reads them.
        changelogs: topics that its state stores are kept in. With any, its tasks are stateful: they can have standbys
            and warm-ups.
        copartition_groups: sets of its sources (topics, patterns or repartition topics, by name) that need equally
            many partitions, since they are joined.
    """

    source_topics: Collection[str] = ()
    source_patterns: Collection[str] = ()
    repartition_sources: Collection[InternalTopic] = ()
    repartition_sinks: Collection[str] = ()
    changelogs: Collection[InternalTopic] = ()
    copartition_groups: Collection[Collection[str]] = ()

    def __post_init__(self) -> None:
        for name in ("source_topics", "source_patterns", "repartition_sinks"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ConfigError(f"{name} must be a list of names, not the name {given!r}")
            object.__setattr__(self, name, tuple(sorted(given)))
        for name in ("repartition_sources", "changelogs"):
            object.__setattr__(self, name, tuple(sorted(getattr(self, name), key=_name)))
        groups = sorted(tuple(sorted(set(group))) for group in self.copartition_groups)
        object.__setattr__(self, "copartition_groups", tuple(groups))

    @property
    def stateful(self) -> bool:
        """Whether its tasks have state."""
        return bool(self.changelogs)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all topics that it reads; patterns aren't resolved."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_sources))

    def wire(self, subtopology_id: str) -> _WireSubtopology:
        """As a heartbeat has it."""
        sources, patterns = list(self.source_topics), list(self.source_patterns)
        repartition = [topic.name for topic in self.repartition_sources]
        return _WireSubtopology(
            subtopology_id=subtopology_id,
            source_topics=tuple(sources),
            source_topic_regex=tuple(patterns),
            state_changelog_topics=[topic.wire() for topic in self.changelogs],
            repartition_sink_topics=tuple(self.repartition_sinks),
            repartition_source_topics=[topic.wire() for topic in self.repartition_sources],
            copartition_groups=[
                _WireSubtopology.CopartitionGroup(
                    source_topics=_positions(group, sources),
                    source_topic_regex=_positions(group, patterns),
                    repartition_source_topics=_positions(group, repartition),
                )
                for group in self.copartition_groups
            ],
        )


def _name(topic: InternalTopic) -> str:
    return topic.name


def _positions(group: Collection[str], names: list[str]) -> tuple[int, ...]:
    return tuple(position for position, name in enumerate(names) if name in group)


@dataclass(frozen=True)
class Topology:
    """An application's topology (KIP-1071). All members of a group must have the same one.

    Two that say the same are the same to the group, in whatever order they say it.

    Args:
        subtopologies: by id. Kafka Streams counts: "0", "1", ….
        epoch: version of the topology. Kafka Streams always says 0, and Apache Kafka takes no other yet; a group of
            `kohort serve` goes over to a topology with a higher epoch when a member brings one.

    Raises:
        ConfigError: it can't be run by anybody: says which subtopology, and why.
    """

    subtopologies: Mapping[str, Subtopology]
    epoch: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "subtopologies", dict(sorted(self.subtopologies.items())))
        if not self.subtopologies:
            raise ConfigError("a topology needs a subtopology at least")
        if self.epoch < 0:
            raise ConfigError(f"a topology's epoch is 0 or more, not {self.epoch}")
        for name, subtopology in self.subtopologies.items():
            _check(name, subtopology)
        parts = self.subtopologies.values()
        readers = Counter(topic for part in parts for topic in part.inputs)
        if twice := [topic for topic, times in readers.items() if times > 1]:
            raise ConfigError(f"topic {twice[0]} is read twice; a topic belongs to one subtopology")
        repartition = {topic.name for part in parts for topic in part.repartition_sources}
        sinks = {topic for part in parts for topic in part.repartition_sinks}
        if unread := sorted(sinks - repartition):
            raise ConfigError(f"repartition topic {unread[0]} is written, but is no subtopology's repartition source")

    def inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """What a task reads: its partition of each topic that its subtopology names.

        A topic may have fewer partitions than there are tasks; patterns aren't resolved.
        """
        return tuple(TopicPartition(topic, task.partition) for topic in self.subtopologies[task.subtopology].inputs)

    def wire(self) -> _Wire:
        """As a heartbeat has it."""
        return _Wire(epoch=self.epoch, subtopologies=[part.wire(name) for name, part in self.subtopologies.items()])


def _check(name: str, subtopology: Subtopology) -> None:
    where = f"subtopology {name!r}"
    if not name:
        raise ConfigError("a subtopology has no id")
    sources = {*subtopology.inputs, *subtopology.source_patterns}
    if not sources:
        raise ConfigError(f"{where} reads no topic: give it source_topics, source_patterns or repartition_sources")
    for topic in subtopology.changelogs:
        if topic.partitions:
            raise ConfigError(
                f"{where}: changelog {topic.name} has partitions={topic.partitions}; leave it at 0, it gets one a task"
            )
    for group in subtopology.copartition_groups:
        if strange := sorted(set(group) - sources):
            raise ConfigError(f"{where}: {strange[0]} is in a copartition group, but is none of its sources")
