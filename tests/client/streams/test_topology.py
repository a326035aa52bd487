"""Topologies: what they say on the wire, and which can't be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.errors import ConfigError
from kohort.client.streams.topology import InternalTopic, Subtopology, Topology
from kohort.client.types import TopicPartition
from kohort.coordinator.streams.requests import check_topology
from kohort.coordinator.streams.topology import Topology as Understood
from kohort.streams.tasks import TaskId

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
    wire = COUNT.wire()
    check_topology(wire)
    understood = Understood.told(wire)
    assert list(understood.subtopologies) == ["0", "1"]
    assert understood.subtopologies["0"].source_topics == ("lines",)
    assert understood.subtopologies["0"].repartition_sinks == ("app-words-repartition",)
    (changelog,) = understood.subtopologies["1"].changelogs
    assert changelog.configs == (("cleanup.policy", "compact"), ("z", "1"))
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
    first, second = topology.wire().subtopologies[0].copartition_groups
    assert (first.source_topics, first.source_topic_regex, first.repartition_source_topics) == ((0,), (0,), ())
    assert (second.source_topics, second.source_topic_regex, second.repartition_source_topics) == ((1,), (), (0,))


def test_what_a_task_reads() -> None:
    assert COUNT.inputs(TaskId("0", 3)) == (TopicPartition("lines", 3),)
    assert COUNT.inputs(TaskId("1", 2)) == (TopicPartition("app-words-repartition", 2),)
    assert COUNT.subtopologies["1"].stateful
    assert not COUNT.subtopologies["0"].stateful


@pytest.mark.parametrize(
    ("subtopologies", "why"),
    [
        ({}, "at least"),
        ({"": {"source_topics": ["a"]}}, "no id"),
        ({"0": {}}, "'0' reads no topic"),
        ({"0": {"source_topics": ["a"]}, "1": {"source_topics": ["a"]}}, "topic a is read twice"),
        ({"0": {"source_topics": ["a"], "repartition_sinks": ["r"]}}, "r is written"),
        ({"0": {"source_topics": ["a"], "changelogs": [InternalTopic(name="c", partitions=2)]}}, "one a task"),
        ({"0": {"source_topics": ["a"], "copartition_groups": [["a", "b"]]}}, "b is in a copartition group"),
        ({"0": {"source_topics": "lines"}}, "not the name 'lines'"),
    ],
)
def test_topologies_that_cannot_be(subtopologies: dict[str, dict[str, Any]], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Topology({name: Subtopology(**part) for name, part in subtopologies.items()})


def test_a_topology_has_an_epoch_of_0_or_more() -> None:
    with pytest.raises(ConfigError, match="0 or more, not -1"):
        Topology({"0": Subtopology(source_topics=["a"])}, epoch=-1)


def test_task_ids_as_text() -> None:
    assert str(TaskId("my_part", 3)) == "my_part_3"
    assert TaskId.parse("my_part_3") == TaskId("my_part", 3)
    for text in ("", "3", "_3", "0_", "0_x", "0_-1"):
        with pytest.raises(ValueError, match="is no task"):
            TaskId.parse(text)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
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


@given(topologies())
def test_what_can_be_built_the_group_takes(topology: Topology) -> None:
    wire = topology.wire()
    check_topology(wire)
    understood = Understood.told(wire)
    assert understood.epoch == topology.epoch
    for name, part in topology.subtopologies.items():
        groups = {group.topics for group in understood.subtopologies[name].copartition_groups}
        assert groups == {tuple(sorted(group)) for group in part.copartition_groups}
        assert set(understood.subtopologies[name].source_topics) == set(part.source_topics)
