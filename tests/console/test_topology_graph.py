"""A topology's picture: everything is in it, and nothing lies on anything else."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.console.topology_graph import MOST_NODES, MOST_STORES, WIDTH, graph
from kohort.streams.topology import InternalTopic, Subtopology, Topology

WORDS = Topology(
    {
        "0": Subtopology(source_topics=("lines",), repartition_sinks=("words",)),
        "1": Subtopology(repartition_sources=(InternalTopic("words"),), changelogs=(InternalTopic("counts"),)),
    }
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Subtopologies that read and write anything, in circles, too."""
    names = draw(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=6, unique=True))
    topics = [f"r{number}" for number in range(4)]
    readers = {topic: draw(st.sampled_from(names)) for topic in topics}
    return Topology(
        {
            name: Subtopology(
                source_topics=[f"in-{name}"],
                repartition_sources=[InternalTopic(topic) for topic in topics if readers[topic] == name],
                repartition_sinks=draw(st.lists(st.sampled_from(topics), unique=True)),
                changelogs=[InternalTopic(f"s{number}") for number in range(draw(st.integers(0, 12)))],
            )
            for name in names
        }
    )


@settings(max_examples=50, deadline=None)
@given(topologies())
def test_all_is_there_and_nothing_overlaps(topology: Topology) -> None:
    found = graph(topology)
    assert found is not None
    parts = topology.subtopologies
    topics = {topic for part in parts.values() for topic in (*part.inputs, *part.repartition_sinks)}
    assert {node.key for node in found.nodes} == {f"part {name}" for name in parts} | {
        f"topic {topic}" for topic in topics
    }
    assert len(found.arrows) == sum(len(part.inputs) + len(part.repartition_sinks) for part in parts.values())
    for node in found.nodes:
        assert node.x >= 0
        assert node.y >= 0
        assert node.x + WIDTH <= found.width
        assert node.y + node.height <= found.height
        assert len(node.stores) <= MOST_STORES + 1
    for one, other in combinations(found.nodes, 2):
        apart = abs(one.x - other.x) >= WIDTH
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_what_is_read_stands_before_what_reads_it_and_is_said_in_words() -> None:
    found = graph(WORDS)
    assert found is not None
    x = {node.key: node.x for node in found.nodes}
    assert x["topic lines"] < x["part 0"] < x["topic words"] < x["part 1"]
    assert [node.kind for node in found.nodes] == ["topic", "subtopology", "repartition", "subtopology"]
    assert found.text == ("Subtopology 0 reads lines, writes words. Subtopology 1 reads words, and keeps 1 store.")


@settings(max_examples=50, deadline=None)
@given(st.text("ab-._é", min_size=1, max_size=249))
def test_names_are_whole_in_lines_that_fit(name: str) -> None:
    found = graph(Topology({"0": Subtopology(source_topics=[name], changelogs=[InternalTopic(name)])}))
    assert found is not None
    topic, part = found.nodes
    assert "".join(topic.lines) == topic.full == name
    assert ["".join(store) for store in part.stores] == [name]
    assert all(len(line) <= 24 for line in (*topic.lines, *part.lines, *part.stores[0]))


def test_names_that_are_cut_are_whole_beside_the_box() -> None:
    name = "x" * 1_000
    found = graph(
        Topology({name: Subtopology(source_topics=["t"], changelogs=[InternalTopic("a"), InternalTopic(name)])})
    )
    assert found is not None
    part = found.nodes[1]
    assert part.lines[-1].endswith("…")
    assert part.full == f"Subtopology {name}, a, {name}"


def test_names_are_broken_where_their_words_end() -> None:
    found = graph(Topology({"0": Subtopology(source_topics=["flight-delays-by-origin-repartition"])}))
    assert found is not None
    assert found.nodes[0].lines == ("flight-delays-by-origin-", "repartition")


def test_what_is_too_large_has_no_picture() -> None:
    assert graph(Topology({})) is None
    topics = tuple(f"t{number}" for number in range(MOST_NODES))
    assert graph(Topology({"0": Subtopology(source_topics=topics)})) is None
