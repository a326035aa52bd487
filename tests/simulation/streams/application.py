"""Applications that are run: their topologies, the topics these read, and how many tasks that makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TopicInfo
from kohort.streams.tasks import TaskId
from tests.simulation.streams.cluster import Topics

Subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


@dataclass(frozen=True)
class Part:
    """A subtopology.

    Attributes:
        id: its name.
        sources: how many topics it reads, all with equally many partitions; 0 if it reads a repartition topic.
        stores: its state stores.
        upstream: the part that writes its repartition topic.
        by_pattern: whether it names its sources by a regular expression.
    """

    id: str
    sources: int = 1
    stores: int = 0
    upstream: str | None = None
    by_pattern: bool = False


KINDS = (
    Part("0"),
    Part("1", stores=1),
    Part("2", sources=2, stores=2),
    Part("3", sources=0, stores=1, upstream="0"),
    Part("4", stores=1, by_pattern=True),
    Part("5", sources=0, stores=3, upstream="0"),
)


@dataclass(frozen=True)
class Application:
    """What the members of a group run.

    Attributes:
        group_id: the group, which is the application's id.
        epoch: of the topology.
        parts: its subtopologies.
    """

    group_id: str
    epoch: int
    parts: tuple[Part, ...]

    @property
    def stores(self) -> dict[str, int]:
        """State stores by subtopology."""
        return {part.id: part.stores for part in self.parts}

    def topics(self, part: Part) -> list[str]:
        """The topics that a part reads, if it doesn't read a repartition topic."""
        return [f"{self.group_id}-{part.id}-in{number}" for number in range(part.sources)]

    def sources(self, part: Part) -> list[str]:
        """The topics that a part reads."""
        return [self.repartition_topic(part)] if part.upstream is not None else self.topics(part)

    def repartition_topic(self, part: Part) -> str:
        return f"{self.group_id}-{part.id}-repartition"

    def changelogs(self, part: Part) -> list[str]:
        return [f"{self.group_id}-{part.id}-store{number}-changelog" for number in range(part.stores)]

    def tasks(self, topics: Topics) -> Iterator[TaskId]:
        """All of its tasks, given these topics."""
        for part in self.parts:
            yield from (TaskId(part.id, number) for number in range(self.partitions(part, topics)))

    def partitions(self, part: Part, topics: Topics) -> int:
        """How many tasks a part makes."""
        if part.upstream is not None:
            (above,) = (one for one in self.parts if one.id == part.upstream)
            return self.partitions(above, topics)
        return max((topics.partitions(topic) or 0 for topic in self.topics(part)), default=0)

    def problem(self, topics: Topics) -> int | None:
        """The status code that says why the application can't run with these topics; None if it can."""
        if any(topics.partitions(topic) is None for part in self.parts for topic in self.topics(part)):
            return 1
        missing = False
        for part in self.parts:
            if len({topics.partitions(topic) for topic in self.topics(part)}) > 1:
                return 2
            for topic in self.internal(part):
                partitions = topics.partitions(topic)
                missing = missing or partitions is None
                if partitions not in (None, self.partitions(part, topics)):
                    return 2
        return 3 if missing else None

    def prepare(self, topics: Topics, rng: Random, most: int) -> None:
        """Create the topics that the application expects to be there."""
        for part in self.parts:
            partitions = rng.randint(1, most)
            for topic in self.topics(part):
                if topics.partitions(topic) is None:
                    topics.create(topic, partitions)

    def heal(self, topics: Topics) -> list[str]:
        """Give all topics as many partitions as they need, as an operator would; returns those that changed."""
        wanted: dict[str, int] = {}
        for part in self.parts:
            root = part.upstream or part.id
            counts = (topics.partitions(topic) or 1 for topic in [*self.topics(part), *self.internal(part)])
            wanted[root] = max(wanted.get(root, 1), *counts)
        changed = []
        for part in self.parts:
            for topic in [*self.topics(part), *self.internal(part)]:
                known, partitions = topics.partitions(topic), wanted[part.upstream or part.id]
                if known != partitions and (known is not None or topic in self.topics(part)):
                    topics.create(topic, partitions)
                    changed.append(topic)
        return changed

    def internal(self, part: Part) -> list[str]:
        """The internal topics of a part."""
        return [*self.changelogs(part), *([self.repartition_topic(part)] if part.upstream else [])]

    def topology(self) -> StreamsGroupHeartbeatRequest.Topology:
        """As a member sends it when it joins."""
        subtopologies = [self._subtopology(part) for part in self.parts]
        return StreamsGroupHeartbeatRequest.Topology(epoch=self.epoch, subtopologies=subtopologies)

    def _subtopology(self, part: Part) -> Subtopology:
        sources = [] if part.by_pattern else self.topics(part)
        pattern = [f"{self.group_id}-{part.id}-in[0-9]+"] if part.by_pattern else []
        together = Subtopology.CopartitionGroup(
            source_topics=tuple(range(len(sources))), source_topic_regex=(), repartition_source_topics=()
        )
        repartition = [self.repartition_topic(part)] if part.upstream is not None else []
        return Subtopology(
            subtopology_id=part.id,
            source_topics=tuple(sources),
            source_topic_regex=tuple(pattern),
            state_changelog_topics=[_internal(name) for name in self.changelogs(part)],
            repartition_sink_topics=tuple(
                self.repartition_topic(below) for below in self.parts if below.upstream == part.id
            ),
            repartition_source_topics=[_internal(name) for name in repartition],
            copartition_groups=[together] if len(sources) > 1 else [],
        )


def _internal(name: str) -> TopicInfo:
    return TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=[])


def draw(group_id: str, rng: Random) -> Application:
    """An application with some parts of every kind."""
    parts = [part for part in KINDS[:3] if rng.random() < 0.6]
    if rng.random() < 0.3:
        parts.append(KINDS[4])
    if not parts or rng.random() < 0.5:
        parts = [KINDS[0], *(part for part in parts if part is not KINDS[0]), rng.choice([KINDS[3], KINDS[5]])]
    return Application(group_id, 0, tuple(parts))


def changed(application: Application, rng: Random) -> Application:
    """The next version of an application: with another state store, or without its last part."""
    parts = list(application.parts)
    if len(parts) > 1 and rng.random() < 0.5:
        parts.pop()
    else:
        number = rng.randrange(len(parts))
        parts[number] = replace(parts[number], stores=(parts[number].stores + 1) % 4)
    return replace(application, epoch=application.epoch + 1, parts=tuple(parts))
