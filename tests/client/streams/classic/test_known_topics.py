"""Topics as the leader of a classic streams group sees them in the cluster's metadata."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.client.streams_group_leader import KnownTopics
from kohort.client.types import TopicInfo


def topic(name: str, number: int, *, internal: bool = False) -> tuple[str, TopicInfo]:
    return name, TopicInfo(name, UUID(int=number), internal, {})


TOPICS = dict([topic("in-1", 1), topic("in-2", 2), topic("__in", 3, internal=True), topic("a" * 40, 4)])


def test_it_knows_what_it_doesnt_know() -> None:
    topics = KnownTopics(TOPICS, frozenset({"in-1", "out"}))
    assert (topics.topic_id("in-1"), topics.partitions("in-1")) == (UUID(int=1), 0)
    assert (topics.topic_id("out"), topics.partitions("out")) == (None, None)
    assert not topics.unknown
    assert topics.partitions("other") is None
    assert topics.unknown == {"other"}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("in-.", ["in-1", "in-2"]),
        (".*in.*", ["in-1", "in-2"]),
        ("(a+)+b", []),
        ("a{9999999999}", []),
        ("[", []),
        (r"(i)n-\1", []),
    ],
)
def test_patterns_match_all_of_a_name_and_no_internal_topic_in_little_time(pattern: str, names: list[str]) -> None:
    assert list(KnownTopics(TOPICS, None).matching(pattern)) == names
