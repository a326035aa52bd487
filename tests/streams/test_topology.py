"""Topologies: what follows from them, and which can't be."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.client.types import TopicPartition
from kohort.streams.tasks import TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError, check

COUNT = Topology(
    {
        "1": Subtopology(
            repartition_sources=[InternalTopic(name="app-words-repartition")],
            changelogs=[InternalTopic(name="app-counts-changelog", configs={"z": "1", "cleanup.policy": "compact"})],
        ),
        "0": Subtopology(source_topics=["lines"], repartition_sinks=["app-words-repartition"]),
    }
)


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
        (
            {"0": {"source_topics": ["a"]}, "1": {"source_topics": ["a"]}},
            "topic a is a source already",
        ),
        ({"0": {"source_topics": ["a"], "repartition_sinks": ["r"]}}, "r is a repartition source of no"),
        (
            {"0": {"source_topics": ["a"], "changelogs": [InternalTopic(name="c", partitions=2)]}},
            "as many as",
        ),
        ({"0": {"source_topics": ["a"], "copartition_groups": [["a", "b"]]}}, "b is in a copartition group"),
        ({"0": {"source_topics": "lines"}}, "not the name 'lines'"),
    ],
)
def test_topologies_that_cannot_be(subtopologies: dict[str, dict[str, Any]], why: str) -> None:
    with pytest.raises(TopologyError, match=why):
        check(Topology({name: Subtopology(**part) for name, part in subtopologies.items()}))


def test_a_topology_has_an_epoch_of_0_or_more() -> None:
    with pytest.raises(TopologyError, match="0 or more, not -1"):
        check(Topology({"0": Subtopology(source_topics=["a"])}, epoch=-1))


def test_two_topologies_that_say_the_same_are_equal() -> None:
    one = Subtopology(source_topics=["a", "b"], copartition_groups=[["b", "a"]])
    other = Subtopology(source_topics=("b", "a"), copartition_groups=[("a", "b", "a")])
    assert Topology({"1": COUNT.subtopologies["1"], "0": one}) == Topology({"0": other, "1": COUNT.subtopologies["1"]})
