"""What a streams application consists of: its subtopologies, and the topics that they read, write and keep state in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kohort.protocol.errors import shown
from kohort.protocol.topic_partition import TopicPartition
from kohort.streams.tasks import TaskId


class TopologyError(ValueError):
    """A topology that no group can run: says which subtopology, and why."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition topic or a changelog: the brokers create it when the first member joins.

    Attributes:
        name: by custom "<application id>-<what for>-repartition" or "…-changelog".
        partitions: 0 leaves them to the broker. Members send 0 for a changelog, which gets one for each task.
        replication_factor: 0 for the broker's default.
        configs: the topic's settings, such as `{"cleanup.policy": "compact"}`.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A part of a topology that runs as one task for each partition of its sources.

    Attributes:
        source_patterns: regular expressions for names of such topics (RE2 syntax). Apache Kafka takes none yet.
        repartition_sinks: names of repartition topics that it writes; another subtopology reads them.
        changelogs: topics that its state stores are kept in, one for each store. With any, its tasks are stateful: they
            can have standbys and warm-ups.
        copartition_groups: sets of its sources (topics, patterns or repartition topics, by name) that need equally
            many partitions, since they are joined.

    All are sorted, so that the order in which they are given makes no difference.
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
                raise TopologyError(f"{name} must be a list of names, not the name {given!r}")
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
        return (*self.source_topics, *map(_name, self.repartition_sources))


def _name(topic: InternalTopic) -> str:
    return topic.name


@dataclass(frozen=True)
class Topology:
    """An application's topology (KIP-1071). All members of a group must have the same one.

    Topologies are equal whatever the order in which their parts are given.

    Args:
        subtopologies: by id. Kafka Streams counts: "0", "1", ….
        epoch: version of the topology. Kafka Streams always has 0, and Apache Kafka takes no other yet; a group of
            `kohort serve` goes over to a topology with a higher epoch when a member brings one.
    """

    subtopologies: Mapping[str, Subtopology]
    epoch: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "subtopologies", dict(sorted(self.subtopologies.items())))

    def inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """What a task reads: its partition of each topic that its subtopology names.

        A topic may have fewer partitions than there are tasks; patterns aren't resolved.
        """
        return tuple(TopicPartition(topic, task.partition) for topic in self.subtopologies[task.subtopology].inputs)

    @cached_property
    def readers(self) -> Mapping[str, str]:
        """The id of the subtopology that reads a topic, by the topic's name; patterns aren't resolved."""
        return {topic: name for name, subtopology in self.subtopologies.items() for topic in subtopology.inputs}

    @cached_property
    def internal_topics(self) -> frozenset[str]:
        """Names of the repartition topics and changelogs; a changelog that is also a source topic isn't one."""
        parts = self.subtopologies.values()
        named = {name for part in parts for name in part.source_topics}
        return (
            frozenset(topic.name for part in parts for topic in (*part.repartition_sources, *part.changelogs)) - named
        )

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """Names of all topics that it reads or keeps state in; members have to be allowed to see them."""
        return self.internal_topics | self.readers.keys()

    @cached_property
    def source_patterns(self) -> frozenset[str]:
        """The regular expressions of all subtopologies."""
        return frozenset(pattern for part in self.subtopologies.values() for pattern in part.source_patterns)


def check(topology: Topology) -> None:
    """Checks a topology before a member brings it to a group.

    Raises:
        TopologyError: no group can run it.
    """
    if not topology.subtopologies:
        raise TopologyError("a topology needs a subtopology at least")
    if topology.epoch < 0:
        raise TopologyError(f"a topology's epoch is 0 or more, not {topology.epoch}")
    check_subtopologies(topology)
    for name, subtopology in topology.subtopologies.items():
        sources = {*subtopology.inputs, *subtopology.source_patterns}
        for group in subtopology.copartition_groups:
            if strange := sorted(set(group) - sources):
                raise TopologyError(
                    f"Subtopology {shown(name)}: {strange[0]} is in a copartition group, but is none of its sources."
                )


def check_subtopologies(topology: Topology) -> None:
    """Checks what members and the coordinator both check: each topic is read once, and each sink is read.

    Raises:
        TopologyError: no group can run it.
    """
    readers: dict[str, str] = {}
    for name, subtopology in topology.subtopologies.items():
        where = f"Subtopology {shown(name)}"
        if not name:
            raise TopologyError("A subtopology has no id.")
        for topic in subtopology.inputs:
            if topic in readers:
                raise TopologyError(
                    f"{where}: topic {topic} is a source already, of subtopology {shown(readers[topic])}."
                )
            readers[topic] = name
        for changelog in subtopology.changelogs:
            if changelog.partitions:
                raise TopologyError(
                    f"{where}: changelog {changelog.name} has Partitions {changelog.partitions}; it must be 0, since "
                    f"a changelog has as many as the subtopology has tasks."
                )
        if not subtopology.inputs and not subtopology.source_patterns:
            raise TopologyError(f"{where} reads no topic.")
    parts = topology.subtopologies.values()
    sources = {topic.name for part in parts for topic in part.repartition_sources}
    sinks = {topic for part in parts for topic in part.repartition_sinks}
    if unread := sorted(sinks - sources):
        raise TopologyError(f"Repartition sink {unread[0]} is a repartition source of no subtopology.")
