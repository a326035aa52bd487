from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.modern.metadata_hash import metadata_hash as hash_of
from kohort.streams.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    configure,
    topics_of,
)
from kohort.streams.patterns import matching
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.topology import InternalTopic, Subtopology, Topology


class Topics:
    """Topics, and their partitions."""

    def __init__(self, **partitions: int) -> None:
        self.counts: dict[str, int] = partitions
        self.ids: dict[str, uuid.UUID] = {}

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> uuid.UUID | None:
        return self.ids.get(topic, uuid.uuid5(uuid.NAMESPACE_DNS, topic)) if topic in self.counts else None

    def matching(self, pattern: str) -> Sequence[str]:
        return matching(pattern, self.counts)


def metadata_hash(application: Topology, topics: Topics) -> int:
    return hash_of(topics_of(application, topics.matching), topics)


Named: TypeAlias = tuple[str, Subtopology]


def subtopology(name: str, sources: Sequence[str] = (), patterns: Sequence[str] = (), **more: Any) -> Named:
    return name, Subtopology(source_topics=sources, source_patterns=patterns, **more)


def topology(*subtopologies: Named) -> Topology:
    return Topology(dict(subtopologies), 7)


def configured(topics: Topics, *subtopologies: Named) -> ConfiguredTopology:
    return configure(topology(*subtopologies), topics.partitions, topics.matching)


def internal(*names: str, partitions: int = 0) -> tuple[InternalTopic, ...]:
    return tuple(InternalTopic(name, partitions) for name in names)


def problem(topics: Topics, *subtopologies: Named) -> Status:
    found = configured(topics, *subtopologies)
    assert found.problem is not None
    assert not found.ready
    assert not found.missing
    assert not found.subtopologies
    return found.problem


def tasks(found: ConfiguredTopology) -> Mapping[str, int]:
    return {each.id: each.tasks for each in found.subtopologies.values()}


def created(found: ConfiguredTopology) -> Mapping[str, int]:
    return {topic.name: topic.partitions for topic in found.missing}


WORDS = subtopology("0", ("words",), repartition_sinks=("r",))
COUNTS = subtopology("1", repartition_sources=internal("r"), changelogs=internal("store"))


def test_a_topology_whose_topics_are_there_is_ready() -> None:
    found = configured(Topics(words=3, r=3, store=3), WORDS, COUNTS)
    assert found == ConfiguredTopology(
        7,
        {
            "0": ConfiguredSubtopology("0", 3, {"words": 3}, ("r",)),
            "1": ConfiguredSubtopology(
                "1", 3, {"r": 3}, (), internal("r", partitions=3), internal("store", partitions=3)
            ),
        },
    )
    assert found.ready


def test_a_task_has_as_many_state_stores_as_there_are_changelogs() -> None:
    part = subtopology("0", ("a",), changelogs=internal("x", "y"))
    assert configured(Topics(a=1), part).subtopologies["0"].state_stores == 2


def test_internal_topics_that_are_missing_are_to_be_created() -> None:
    found = configured(Topics(words=3), WORDS, COUNTS)
    assert found.missing == (*internal("r", partitions=3), *internal("store", partitions=3))
    assert found.problem == Status(StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: r, store.")
    assert tasks(found) == {"0": 3, "1": 3}


def test_a_topic_to_create_has_the_settings_that_were_asked_for() -> None:
    wanted = InternalTopic("store", 0, 3, {"cleanup.policy": "compact"})
    found = configured(Topics(a=4), subtopology("0", ("a",), changelogs=(wanted,)))
    assert found.missing == (InternalTopic("store", 4, 3, {"cleanup.policy": "compact"}),)


def test_source_topics_that_are_missing_are_named_up_to_a_few() -> None:
    part = subtopology("0", ("a", "b", "c", "d", "e"))
    assert problem(Topics(c=1), part) == Status(
        StatusCode.MISSING_SOURCE_TOPICS, "Source topics a, b, d and 1 more are missing."
    )


def test_the_subtopology_has_as_many_tasks_as_its_largest_source_has_partitions() -> None:
    part = subtopology("0", ("a", "b"), repartition_sources=internal("r", partitions=4), changelogs=internal("s"))
    found = configured(Topics(a=2, b=6), part)
    assert found.subtopologies["0"].sources == {"a": 2, "b": 6, "r": 4}
    assert created(found) == {"r": 4, "s": 6}


def test_a_declared_number_of_partitions_counts() -> None:
    reader = subtopology("1", repartition_sources=internal("r", partitions=8))
    assert created(configured(Topics(words=3), WORDS, reader)) == {"r": 8}


def test_numbers_of_partitions_pass_along_a_chain_whatever_its_order() -> None:
    chain = [
        subtopology("3", ("a",), repartition_sinks=("x",)),
        subtopology("2", repartition_sources=internal("x"), repartition_sinks=("y",)),
        subtopology("1", repartition_sources=internal("y"), changelogs=internal("s")),
    ]
    assert created(configured(Topics(a=5), *chain)) == {"x": 5, "y": 5, "s": 5}


def test_a_long_chain_takes_no_long_time() -> None:
    first = subtopology("s00000", ("a",), repartition_sinks=("r1",))
    chain = [
        subtopology(f"s{9999 - n:05}", repartition_sources=internal(f"r{n}"), repartition_sinks=(f"r{n + 1}",))
        for n in range(1, 5000)
    ]
    assert len(created(configured(Topics(a=5), first, *chain))) == 4999


def test_a_repartition_topic_has_as_many_partitions_as_the_largest_of_its_writers() -> None:
    writers = [subtopology("0", ("a",), repartition_sinks=("r",)), subtopology("1", ("b",), repartition_sinks=("r",))]
    reader = subtopology("2", repartition_sources=internal("r"))
    assert created(configured(Topics(a=2, b=6), *writers, reader)) == {"r": 6}


def test_a_source_whose_partitions_are_known_late_counts() -> None:
    parts = [
        subtopology("0", ("small",), repartition_sources=internal("late"), repartition_sinks=("r",)),
        subtopology("1", repartition_sources=internal("r")),
        subtopology("2", ("large",), repartition_sinks=("late",)),
    ]
    assert created(configured(Topics(small=2, large=6), *parts)) == {"late": 6, "r": 6}


def test_a_loop_goes_by_what_it_knows() -> None:
    loop = subtopology("0", ("a",), repartition_sources=internal("r"), repartition_sinks=("r",))
    assert created(configured(Topics(a=3), loop)) == {"r": 3}


def test_a_loop_that_another_feeds_goes_by_that() -> None:
    parts = [
        subtopology("0", repartition_sources=internal("r"), repartition_sinks=("r",)),
        subtopology("1", ("a",), repartition_sinks=("r",)),
    ]
    assert created(configured(Topics(a=3), *parts)) == {"r": 3}


def test_a_loop_that_knows_nothing_is_no_topology() -> None:
    parts = [
        subtopology("0", repartition_sources=internal("x"), repartition_sinks=("y",)),
        subtopology("1", repartition_sources=internal("y"), repartition_sinks=("x",)),
    ]
    assert problem(Topics(), *parts).detail.endswith("should have: x, y.")


@pytest.mark.parametrize(
    "there",
    [{"words": 6, "r": 3, "store": 3}, {"words": 3, "r": 3, "store": 1}, {"words": 3, "r": 9}],
    ids=["source grew", "changelog", "repartition"],
)
def test_internal_topics_with_other_numbers_of_partitions_are_wrong(there: dict[str, int]) -> None:
    found = problem(Topics(**there), WORDS, COUNTS)
    assert found.code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "wrong number of partitions" in found.detail


def test_a_source_topic_that_is_the_changelog_as_well_is_left_alone() -> None:
    part = subtopology("0", ("table", "stream"), changelogs=internal("table"))
    found = configured(Topics(table=2, stream=4), part)
    assert found.ready
    assert found.subtopologies["0"].state_stores == 1


def copartitioned(*topics: str) -> tuple[tuple[str, ...], ...]:
    return (topics,)


def test_copartitioned_sources_need_equal_numbers_of_partitions() -> None:
    part = subtopology("0", ("a", "b"), copartition_groups=copartitioned("a", "b"))
    assert problem(Topics(a=2, b=3), part) == Status(
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "These topics have to have equally many partitions, and have not: a (2), b (3).",
    )


def test_a_repartition_topic_follows_the_sources_of_its_group() -> None:
    writer = subtopology("0", ("a",), repartition_sinks=("r",))
    join = subtopology(
        "1",
        ("b",),
        repartition_sources=internal("r"),
        changelogs=internal("s"),
        copartition_groups=copartitioned("b", "r"),
    )
    found = configured(Topics(a=8, b=3), writer, join)
    assert created(found) == {"r": 3, "s": 3}
    assert tasks(found) == {"0": 8, "1": 3}


def test_a_repartition_topic_follows_those_of_its_group_whose_number_is_declared() -> None:
    writer = subtopology("0", ("a",), repartition_sinks=("r", "s"))
    sources = (InternalTopic("r"), InternalTopic("s", 5))
    join = subtopology("1", repartition_sources=sources, copartition_groups=copartitioned("r", "s"))
    other = subtopology("2", repartition_sources=internal("u", partitions=9))
    assert created(configured(Topics(a=8), writer, join, other)) == {"r": 5, "s": 5, "u": 9}


def test_repartition_topics_without_a_declared_number_follow_the_largest() -> None:
    writers = [subtopology("0", ("a",), repartition_sinks=("r",)), subtopology("1", ("b",), repartition_sinks=("s",))]
    join = subtopology("2", repartition_sources=internal("r", "s"), copartition_groups=copartitioned("r", "s"))
    assert created(configured(Topics(a=2, b=6), *writers, join)) == {"r": 6, "s": 6}


@pytest.mark.parametrize("other", [("a",), ()])
def test_a_declared_number_that_doesnt_fit_its_group_is_wrong(other: tuple[str, ...]) -> None:
    sources = (InternalTopic("r", 2), InternalTopic("s", 5))
    groups = copartitioned(*other, "r", "s")
    found = problem(Topics(a=5), subtopology("0", other, repartition_sources=sources, copartition_groups=groups))
    assert found.code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS


def test_an_empty_copartition_group_says_nothing() -> None:
    assert configured(Topics(a=2), subtopology("0", ("a",), copartition_groups=((),))).ready


def test_a_pattern_stands_for_the_topics_that_match() -> None:
    part = subtopology("0", patterns=("in-.*",), changelogs=internal("in-store"))
    found = configured(Topics(**{"in-a": 2, "in-b": 4, "out": 9, "in-store": 4, "__consumer_offsets": 50}), part)
    assert found.ready
    assert found.subtopologies["0"].sources == {"in-a": 2, "in-b": 4}


def test_a_pattern_doesnt_take_kafkas_own_topics_nor_those_read_by_name() -> None:
    parts = [subtopology("0", ("a",)), subtopology("1", patterns=(".*",))]
    found = configured(Topics(a=1, b=2, __consumer_offsets=50), *parts)
    assert found.subtopologies["1"].sources == {"b": 2}


def test_a_pattern_that_nothing_matches_lacks_its_sources() -> None:
    part = subtopology("0", patterns=("in-.*",))
    assert problem(Topics(out=1), part) == Status(
        StatusCode.MISSING_SOURCE_TOPICS, "No topic matches these source patterns: in-.*."
    )


def test_a_topic_that_two_subtopologies_match_is_nobodys() -> None:
    parts = [subtopology("0", patterns=("a.*",)), subtopology("1", patterns=(".*b",))]
    assert problem(Topics(ab=1), *parts).code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS


def test_a_pattern_that_matches_much_may_be_in_many_copartition_groups() -> None:
    topics = Topics(**{f"in-{number}": 2 for number in range(3_000)})
    groups = (("in-.*",),) * 10_000
    began = time.process_time()

    assert configured(topics, subtopology("0", patterns=("in-.*",), copartition_groups=groups)).ready

    assert time.process_time() - began < 2


def test_topics_of_a_pattern_that_differ_cannot_be_copartitioned() -> None:
    part = subtopology("0", (), ("in-.*",), copartition_groups=(("in-.*",),))
    found = problem(Topics(**{"in-1": 2, "in-2": 3}), part)
    assert found.code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "in-1 (2), in-2 (3)" in found.detail


def test_topics_of_a_pattern_can_be_copartitioned() -> None:
    part = subtopology("0", ("a",), ("in-.*",), copartition_groups=(("a", "in-.*"),))
    assert problem(Topics(**{"a": 2, "in-b": 3}), part).code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS


def test_a_topic_with_the_text_of_a_pattern_is_in_copartition_groups_as_well() -> None:
    part = subtopology("0", ("a.b", "c"), ("a.b",), copartition_groups=copartitioned("a.b", "c"))
    found = problem(Topics(**{"a.b": 2, "aXb": 3, "c": 3}), part)
    assert found.code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "a.b (2), aXb (3), c (3)" in found.detail


@given(st.data())
def test_configuring_never_fails(draw: st.DataObject) -> None:
    names = st.sampled_from("abcdef")
    some = st.lists(names, unique=True, max_size=3).map(tuple)

    def topics() -> tuple[InternalTopic, ...]:
        return tuple(InternalTopic(name, draw.draw(st.integers(0, 3))) for name in draw.draw(some))

    parts = []
    for number in range(draw.draw(st.integers(0, 4))):
        sources, repartition = draw.draw(some), topics()
        known = [*sources, *(topic.name for topic in repartition)]
        group = draw.draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
        parts.append(
            subtopology(
                str(number),
                sources,
                repartition_sinks=draw.draw(some),
                repartition_sources=repartition,
                changelogs=topics(),
                copartition_groups=(group,),
            )
        )
    there = Topics(**draw.draw(st.dictionaries(names, st.integers(1, 4))))
    found = configured(there, *parts)
    if found.ready:
        assert all(each.tasks == max(each.sources.values(), default=0) for each in found.subtopologies.values())
        return
    again = Topics(**there.counts, **{topic.name: topic.partitions for topic in found.missing})
    if found.missing and all(again.counts.values()):
        assert configured(again, *parts).ready, "creating what is missing heals"


def test_the_hash_of_topics_that_arent_there_is_0() -> None:
    assert metadata_hash(topology(WORDS, COUNTS), Topics(other=3)) == 0


def test_the_hash_is_the_same_in_every_process() -> None:
    assert metadata_hash(topology(WORDS, COUNTS), Topics(words=3, r=3)) == 1790014137668342444


@pytest.mark.parametrize("change", ["grown", "gone", "new", "replaced", "matched"])
def test_the_hash_changes_with_the_topics(change: str) -> None:
    application = topology(WORDS, COUNTS, subtopology("2", patterns=("in-.*",)))
    topics = Topics(words=3, r=3)
    before = metadata_hash(application, topics)
    match change:
        case "grown":
            topics.counts["words"] = 4
        case "gone":
            del topics.counts["r"]
        case "new":
            topics.counts["store"] = 3
        case "replaced":
            topics.ids["words"] = uuid.UUID(int=1)
        case _:
            topics.counts["in-a"] = 1
    assert metadata_hash(application, topics) != before


def test_the_hash_doesnt_depend_on_other_topics() -> None:
    one, other = Topics(words=3, r=3), Topics(r=3, others=9, words=3)
    assert metadata_hash(topology(WORDS, COUNTS), one) == metadata_hash(topology(WORDS, COUNTS), other)
