"""Topics as streams groups see them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.cluster import BrokerCluster
from kohort.broker.topics import Topics


class Storage:
    """Partitions without logs."""

    def open(self, topic: Any, indexes: range, *, new: bool = False) -> list[Any]:
        return [SimpleNamespace(offline=None) for _ in indexes]

    def remove(self, partition: Any) -> None: ...

    def configure(self, topic: Any) -> None: ...


@pytest.fixture
def topics() -> Iterator[Topics]:
    topics = Topics(1, Storage(), lambda records: None, uuid.uuid4)
    for name in ("orders-eu", "orders-us", "people", "__consumer_offsets"):
        topics.create(name, 2)
    yield topics


def test_partitions_and_ids(topics: Topics) -> None:
    cluster = BrokerCluster(topics)
    known = topics.get("people")
    assert known is not None

    assert (cluster.partitions("people"), cluster.topic_id("people")) == (2, known.id)
    assert (cluster.partitions("absent"), cluster.topic_id("absent")) == (None, None)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders-.*", ("orders-eu", "orders-us")),
        ("orders", ()),
        ("people|orders-eu", ("orders-eu", "people")),
        (".*", ("orders-eu", "orders-us", "people")),
        ("people)|(x", ()),
        ("(", ()),
        ("(a+)+" * 20, ()),
        ("(?=people)people", ()),
    ],
)
def test_a_pattern_matches_whole_names(topics: Topics, pattern: str, names: tuple[str, ...]) -> None:
    assert BrokerCluster(topics).matching(pattern) == names


def test_topics_come_and_go(topics: Topics) -> None:
    cluster = BrokerCluster(topics)
    assert cluster.matching("orders-.*") == ("orders-eu", "orders-us")

    topics.create("orders-asia", 1)
    assert cluster.matching("orders-.*") == ("orders-asia", "orders-eu", "orders-us")
    topics.delete("orders-us")
    assert cluster.matching("orders-.*") == ("orders-asia", "orders-eu")


def test_no_pattern_keeps_anybody_waiting(topics: Topics) -> None:
    topics.create("a" * 240, 1)
    cluster = BrokerCluster(topics)

    assert cluster.matching("(a|aa|aaa)*b") == ()
    assert cluster.matching("((a{1,100}){1,100}){1,100}") == ()


def test_not_every_pattern_is_remembered(topics: Topics) -> None:
    cluster = BrokerCluster(topics)

    for number in range(1200):
        cluster.matching(f"orders-{number}")

    assert len(cluster._matching) <= 1000
