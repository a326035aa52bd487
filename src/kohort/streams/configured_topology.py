"""A topology configured with the existing topics: its tasks, the internal topics to create, or what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Final

from kohort.protocol.stored import INTERNAL_TOPICS
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.topology import InternalTopic, Subtopology, Topology

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with its topics resolved.

    Attributes:
        tasks: number of its tasks: the partitions of the source that has most.
        sources: partitions of each topic that it reads, repartition topics included.
        repartition_sinks: names of repartition topics it writes.
        repartition_sources: repartition topics it reads, with their numbers of partitions.
        changelogs: its changelogs, with their numbers of partitions.
    """

    id: str
    tasks: int
    sources: Mapping[str, int]
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()

    @property
    def state_stores(self) -> int:
        """State stores of each task: as many as there are changelogs."""
        return len(self.changelogs)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with its topics resolved.

    Attributes:
        subtopologies: by id, in the order of ids; none with problems 1 and 2.
        problem: the status that says why no tasks are assigned; None if all is well.
        missing: internal topics to create, by name.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] = field(default_factory=dict)
    problem: Status | None = None
    missing: tuple[InternalTopic, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


def configure(
    topology: Topology, partitions: Callable[[str], int | None], matching: Callable[[str], Sequence[str]]
) -> ConfiguredTopology:
    """Configures a topology. Never raises: what is wrong is the result's `problem`.

    Where a source topic grows later, its subtopology needs more tasks, and a changelog or repartition topic that
    follows it has too few partitions: INCORRECTLY_PARTITIONED_TOPICS, as in Kafka, until somebody repairs it, since
    records of one key would be in two partitions.

    Args:
        topology: the topology, as `check_topology` accepts it.
        partitions: number of partitions of a topic; None if there is no such topic.
        matching: names of the topics that a pattern matches.
    """
    try:
        subtopologies = _Configuration(topology, partitions, matching).subtopologies()
        missing = _missing(subtopologies, partitions)
    except _ProblemError as error:
        return ConfiguredTopology(topology.epoch, problem=error.problem)
    problem = None
    if missing:
        names = [topic.name for topic in missing]
        problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_shown(names)}.")
    return ConfiguredTopology(topology.epoch, subtopologies, problem, missing)


def topics_of(topology: Topology, matching: Callable[[str], Sequence[str]]) -> set[str]:
    """Returns the names of the topics that a configured topology depends on, whether they exist or not."""
    return set(topology.required_topics).union(*map(matching, topology.source_patterns))


class _ProblemError(Exception):
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(code, detail)
        self.problem = Status(code, detail)


class _Configuration:
    """The partitions of all sources: of existing topics, and of the repartition topics that follow from them."""

    def __init__(
        self, topology: Topology, partitions: Callable[[str], int | None], matching: Callable[[str], Sequence[str]]
    ) -> None:
        self._subtopologies = topology.subtopologies
        self._matched = _resolve(topology, matching)
        self._repartition = {
            topic.name: topic for each in topology.subtopologies.values() for topic in each.repartition_sources
        }
        self._sources = {
            name: self._named(each.inputs, each.source_patterns) for name, each in topology.subtopologies.items()
        }
        self._partitions = {name: topic.partitions for name, topic in self._repartition.items() if topic.partitions}
        self._look_up(partitions)
        self._derive()
        # Of each pattern once: it may match thousands of topics, and be in thousands of groups.
        self._counts = {pattern: {self._partitions[name] for name in names} for pattern, names in self._matched.items()}
        for each in topology.subtopologies.values():
            inputs, patterns = set(each.inputs), set(each.source_patterns)
            for group in each.copartition_groups:
                # Groups are by name, so what is both a topic and a pattern counts as both.
                self._copartition(inputs.intersection(group), patterns.intersection(group))

    def subtopologies(self) -> dict[str, ConfiguredSubtopology]:
        return {name: self._configured(name, each) for name, each in self._subtopologies.items()}

    def _configured(self, subtopology_id: str, subtopology: Subtopology) -> ConfiguredSubtopology:
        sources = {name: self._partitions[name] for name in sorted(self._sources[subtopology_id])}
        tasks = self._tasks(subtopology_id)
        return ConfiguredSubtopology(
            id=subtopology_id,
            tasks=tasks,
            sources=sources,
            repartition_sinks=tuple(subtopology.repartition_sinks),
            repartition_sources=tuple(
                replace(topic, partitions=sources[topic.name]) for topic in subtopology.repartition_sources
            ),
            changelogs=tuple(replace(topic, partitions=tasks) for topic in subtopology.changelogs),
        )

    def _named(self, topics: Iterable[str], patterns: Iterable[str]) -> set[str]:
        return {*topics, *(name for pattern in patterns for name in self._matched[pattern])}

    def _tasks(self, subtopology: str) -> int:
        return max((self._partitions.get(name, 0) for name in self._sources[subtopology]), default=0)

    def _look_up(self, partitions: Callable[[str], int | None]) -> None:
        """Looks up the partitions of the topics that users created."""
        missing = []
        for name in set().union(*self._sources.values()) - self._repartition.keys():
            count = partitions(name)
            if count is None:
                missing.append(name)
            else:
                self._partitions[name] = count
        unmatched = [pattern for pattern, names in self._matched.items() if not names]
        problems = []
        if missing:
            problems.append(f"Source topics {_shown(missing)} are missing.")
        if unmatched:
            problems.append(f"No topic matches these source patterns: {_shown(unmatched)}.")
        if problems:
            raise _ProblemError(StatusCode.MISSING_SOURCE_TOPICS, " ".join(problems))

    def _derive(self) -> None:
        """Gives the other repartition topics as many partitions as the subtopology that writes them has tasks.

        A subtopology's turn comes when the partitions of its sources are known, as far as they can be. Where topics
        wait for each other in a circle, the first subtopology that knows any of its sources goes by that.
        """
        written: dict[str, int] = {}
        for each in self._subtopologies.values():
            for sink in each.repartition_sinks:
                if sink not in self._partitions:
                    written[sink] = written.get(sink, 0) + 1
        readers: dict[str, list[str]] = {}
        waits: dict[str, int] = {}
        for subtopology, sources in self._sources.items():
            open_sources = [name for name in sources if name not in self._partitions]
            waits[subtopology] = len(open_sources)
            for name in open_sources:
                readers.setdefault(name, []).append(subtopology)
        turns = [(waits[each] > 0, each) for each in waits if self._tasks(each)]
        heapify(turns)
        done = set()
        while turns:
            _, subtopology = heappop(turns)
            if subtopology in done:
                continue
            done.add(subtopology)
            tasks = self._tasks(subtopology)
            for sink in self._subtopologies[subtopology].repartition_sinks:
                if sink not in written:
                    continue
                self._partitions[sink] = max(self._partitions.get(sink, 0), tasks)
                written[sink] -= 1
                for reader in readers.get(sink, ()):
                    waits[reader] -= not written[sink]
                    heappush(turns, (waits[reader] > 0, reader))
        unknown = [name for name in self._repartition if name not in self._partitions]
        if unknown:
            raise _ProblemError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Nothing says how many partitions these repartition topics should have: {_shown(unknown)}.",
            )

    def _copartition(self, topics: Collection[str], patterns: Collection[str]) -> None:
        """Lets a group's repartition topics follow its other topics, which have to have equally many partitions."""
        outer = {name: self._partitions[name] for name in topics if name not in self._repartition}
        followers = {name: self._partitions[name] for name in topics if name in self._repartition}
        fixed = {name: count for name, count in followers.items() if self._repartition[name].partitions}
        counts = set(outer.values()).union(*(self._counts[pattern] for pattern in patterns))
        wanted = max(counts or fixed.values() or followers.values(), default=0)
        if counts.union(fixed.values()) - {wanted}:
            names = self._named((*outer, *fixed), patterns)
            counted = (f"{name} ({self._partitions[name]})" for name in names)
            raise _ProblemError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"These topics have to have equally many partitions, and have not: {_shown(counted)}.",
            )
        self._partitions.update(dict.fromkeys(followers, wanted))


def _resolve(topology: Topology, matching: Callable[[str], Sequence[str]]) -> dict[str, list[str]]:
    """Returns the topics that each pattern matches, without Kafka's own and those that the topology names."""
    roles = topology.required_topics | INTERNAL_TOPICS
    matched = {
        pattern: [name for name in matching(pattern) if name not in roles] for pattern in topology.source_patterns
    }
    readers: dict[str, str] = {}
    shared: set[str] = set()
    for reader, each in topology.subtopologies.items():
        for pattern in each.source_patterns:
            shared.update(name for name in matched[pattern] if readers.setdefault(name, reader) != reader)
    if shared:
        raise _ProblemError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"These topics match source patterns of more than one subtopology: {_shown(shared)}.",
        )
    return matched


def _missing(
    subtopologies: Mapping[str, ConfiguredSubtopology], partitions: Callable[[str], int | None]
) -> tuple[InternalTopic, ...]:
    """Returns the internal topics to create; existing ones have to have the right number of partitions."""
    sources = {name for each in subtopologies.values() for name in each.sources}
    expected = {}
    for each in subtopologies.values():
        # A table's source topic may be its changelog as well; users create it.
        expected.update({topic.name: topic for topic in each.changelogs if topic.name not in sources})
        expected.update({topic.name: topic for topic in each.repartition_sources})
    missing, wrong = [], []
    for name, topic in sorted(expected.items()):
        count = partitions(name)
        if count is None:
            missing.append(topic)
        elif count != topic.partitions:
            wrong.append(f"{name} ({count} instead of {topic.partitions})")
    if wrong:
        raise _ProblemError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"These internal topics have the wrong number of partitions: {_shown(wrong)}.",
        )
    return tuple(missing)


def _shown(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    shown = sorted(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more
