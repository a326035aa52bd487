"""Topologies on the wire and in records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.streams.request_validation import check_topology
from kohort.protocol.messages.streams_group_heartbeat import KeyValue, StreamsGroupHeartbeatRequest, TopicInfo
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyValue
from kohort.streams.topology import InternalTopic, Subtopology, Topology, check
from kohort.streams.topology_messages import topology_of, topology_record, topology_request

Told = StreamsGroupHeartbeatRequest.Topology
Part = Told.Subtopology
Copartitioned = Part.CopartitionGroup

NAMES = ["a", "b", "c", "d"]


def word_count() -> Told:
    return Told(
        epoch=3,
        subtopologies=[
            Part(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name="repartition")],
                state_changelog_topics=[
                    TopicInfo(name="store-changelog", topic_configs=[KeyValue(key="cleanup.policy", value="compact")]),
                ],
            ),
            Part(subtopology_id="0", source_topics=("words",), repartition_sink_topics=("repartition",)),
        ],
    )


def test_a_topology_names_its_topics() -> None:
    topology = topology_of(word_count())
    assert topology.epoch == 3
    assert list(topology.subtopologies) == ["0", "1"]
    assert topology.readers == {"words": "0", "repartition": "1"}
    assert topology.internal_topics == {"repartition", "store-changelog"}
    assert topology.required_topics == {"words", "repartition", "store-changelog"}
    assert topology.source_patterns == set()


def test_changelogs_keep_their_settings() -> None:
    changelogs = topology_of(word_count()).subtopologies["1"].changelogs
    assert changelogs == (InternalTopic("store-changelog", configs={"cleanup.policy": "compact"}),)


def test_a_source_topic_that_is_a_changelog_as_well_isnt_internal() -> None:
    table = Part(subtopology_id="0", source_topics=("t",), state_changelog_topics=[TopicInfo(name="t")])
    topology = topology_of(Told(subtopologies=[table]))
    assert topology.internal_topics == set()
    assert topology.required_topics == {"t"}


@pytest.mark.parametrize(("told", "factor"), [(-1, 0), (0, 0), (3, 3)])
def test_the_replication_factor_is_the_brokers_unless_it_is_given(told: int, factor: int) -> None:
    part = Part(subtopology_id="0", repartition_source_topics=[TopicInfo(name="r", replication_factor=told)])
    assert topology_of(Told(subtopologies=[part])).subtopologies["0"].repartition_sources == (
        InternalTopic("r", replication_factor=factor),
    )


def test_copartition_groups_are_known_by_name() -> None:
    part = Part(
        subtopology_id="0",
        source_topics=("b", "a"),
        source_topic_regex=("x.*",),
        repartition_source_topics=[TopicInfo(name="s"), TopicInfo(name="r")],
        copartition_groups=[
            Copartitioned(source_topics=(0,), source_topic_regex=(0,), repartition_source_topics=(1,)),
        ],
    )
    assert topology_of(Told(subtopologies=[part])).subtopologies["0"].copartition_groups == (("b", "r", "x.*"),)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 4},
        {"subtopologies": word_count().subtopologies[1:]},
        {"subtopologies": [Part(subtopology_id="0", source_topics=("words", "more"))]},
    ],
)
def test_topologies_that_say_something_else_differ(change: dict[str, Any]) -> None:
    told = word_count()
    for field, value in change.items():
        setattr(told, field, value)
    assert topology_of(told) != topology_of(word_count())


@st.composite
def parts(draw: st.DrawFn, subtopology_id: str) -> Part:
    def named(kind: str) -> list[str]:
        return [f"{kind}-{name}" for name in draw(st.lists(st.sampled_from(NAMES), unique=True))]

    def topics(kind: str) -> list[TopicInfo]:
        return [
            TopicInfo(
                name=name,
                partitions=draw(st.integers(0, 3)),
                replication_factor=draw(st.integers(-1, 3)),
                topic_configs=[KeyValue(key=key, value="v") for key in named("key")],
            )
            for name in named(kind)
        ]

    sources, patterns, repartition = named("source"), named("pattern"), topics("repartition")

    def positions(listed: list[Any]) -> tuple[int, ...]:
        return tuple(draw(st.permutations(range(len(listed))))[: draw(st.integers(0, 4))])

    return Part(
        subtopology_id=subtopology_id,
        source_topics=tuple(sources),
        source_topic_regex=tuple(patterns),
        state_changelog_topics=topics("changelog"),
        repartition_sink_topics=tuple(named("sink")),
        repartition_source_topics=repartition,
        copartition_groups=[
            Copartitioned(
                source_topics=positions(sources),
                source_topic_regex=positions(patterns),
                repartition_source_topics=positions(repartition),
            )
            for _ in range(draw(st.integers(0, 2)))
        ],
    )


@st.composite
def topologies(draw: st.DrawFn) -> Told:
    ids = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    return Told(epoch=draw(st.integers(0, 5)), subtopologies=[draw(parts(each)) for each in ids])


def shuffled(told: Told, draw: st.DataObject) -> Told:
    """The same topology, said in another order."""

    def mixed(listed: Any) -> list[Any]:
        return list(draw.draw(st.permutations(list(listed))))

    subtopologies = []
    for part in mixed(told.subtopologies):
        sources, patterns = mixed(part.source_topics), mixed(part.source_topic_regex)
        repartition = mixed(part.repartition_source_topics)
        groups = [
            Copartitioned(
                source_topics=tuple(mixed(sources.index(part.source_topics[i]) for i in group.source_topics)),
                source_topic_regex=tuple(patterns.index(part.source_topic_regex[i]) for i in group.source_topic_regex),
                repartition_source_topics=tuple(
                    repartition.index(part.repartition_source_topics[i]) for i in group.repartition_source_topics
                ),
            )
            for group in mixed(part.copartition_groups)
        ]
        subtopologies.append(
            Part(
                subtopology_id=part.subtopology_id,
                source_topics=tuple(sources),
                source_topic_regex=tuple(patterns),
                state_changelog_topics=mixed(part.state_changelog_topics),
                repartition_sink_topics=tuple(mixed(part.repartition_sink_topics)),
                repartition_source_topics=repartition,
                copartition_groups=groups,
            )
        )
    return Told(epoch=told.epoch, subtopologies=subtopologies)


@settings(max_examples=40)
@given(topologies(), st.data())
def test_the_order_in_which_a_topology_is_told_makes_no_difference(told: Told, draw: st.DataObject) -> None:
    one, other = topology_of(told), topology_of(shuffled(told, draw))
    assert one == other
    assert topology_record(one).encode(0) == topology_record(other).encode(0)


@settings(max_examples=40)
@given(topologies())
def test_a_record_brings_the_topology_back(told: Told) -> None:
    topology = topology_of(told)
    assert topology_of(StreamsGroupTopologyValue.decode(topology_record(topology).encode(0), 0)) == topology


COUNT = Topology(
    {
        "1": Subtopology(
            repartition_sources=[InternalTopic(name="app-words-repartition")],
            changelogs=[InternalTopic(name="app-counts-changelog", configs={"z": "1", "cleanup.policy": "compact"})],
        ),
        "0": Subtopology(source_topics=["lines"], repartition_sinks=["app-words-repartition"]),
    }
)


def test_a_word_count_as_the_group_understands_it() -> None:
    wire = topology_request(COUNT)
    check_topology(wire)
    understood = topology_of(wire)
    assert list(understood.subtopologies) == ["0", "1"]
    assert understood.subtopologies["0"].source_topics == ("lines",)
    assert understood.subtopologies["0"].repartition_sinks == ("app-words-repartition",)
    (changelog,) = understood.subtopologies["1"].changelogs
    assert changelog.configs == {"cleanup.policy": "compact", "z": "1"}
    assert [topic.name for topic in understood.subtopologies["1"].repartition_sources] == ["app-words-repartition"]


def test_copartition_groups_are_positions_of_sources_patterns_and_repartition_topics() -> None:
    topology = Topology(
        {
            "0": Subtopology(
                source_topics=["b", "a"],
                source_patterns=["x.*"],
                repartition_sources=[InternalTopic(name="r", partitions=2)],
                copartition_groups=[["r", "b"], ["a", "x.*"]],
            )
        }
    )
    first, second = topology_request(topology).subtopologies[0].copartition_groups
    assert (first.source_topics, first.source_topic_regex, first.repartition_source_topics) == ((0,), (0,), ())
    assert (second.source_topics, second.source_topic_regex, second.repartition_source_topics) == ((1,), (), (0,))


@st.composite
def applications(draw: st.DrawFn) -> Topology:
    parts = {}
    for number in range(draw(st.integers(1, 4))):
        names = [f"t{number}-{position}" for position in range(draw(st.integers(1, 3)))]
        repartition = [InternalTopic(name=f"r{number}", partitions=draw(st.integers(1, 3)))] * draw(st.integers(0, 1))
        sources = [*names, *(topic.name for topic in repartition)]
        parts[str(number)] = Subtopology(
            source_topics=draw(st.permutations(names)),
            repartition_sources=repartition,
            changelogs=[InternalTopic(name=f"c{number}-{store}") for store in range(draw(st.integers(0, 2)))],
            copartition_groups=draw(st.lists(st.lists(st.sampled_from(sources), min_size=1), max_size=2)),
        )
    return Topology(parts, epoch=draw(st.integers(0, 3)))


@given(applications())
def test_what_members_say_the_group_understands(topology: Topology) -> None:
    check(topology)
    request = topology_request(topology)
    check_topology(request)
    assert topology_of(request) == topology
