from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.coordinator_runtime import partition_for
from kohort.broker.topics import ConfigResource, Topic, Topics, check_topic_name
from kohort.log.log import Log
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored.cluster_metadata import MetadataRecord


@dataclass
class Memory:
    """Storage that remembers what it was asked."""

    opened: list[tuple[str, int]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    fails_at: int = -1

    def open(self, topic: Topic, indexes: range, *, new: bool = False) -> Iterator[Log]:
        for index in indexes:
            self.opened.append((topic.name, index))
            offline = "too many open files" if len(self.opened) == self.fails_at else None
            yield cast(Log, SimpleNamespace(name=f"{topic.name}-{index}", offline=offline))

    def remove(self, log: Log) -> None:
        self.removed.append(cast(Any, log).name)

    def configure(self, topic: Topic) -> None:
        pass


class Cluster:
    """Topics over a log in memory."""

    def __init__(self, records: list[MetadataRecord] | None = None) -> None:
        self.records: list[MetadataRecord] = []
        self.storage = Memory()
        ids = itertools.count(1 if records is None else 1000)
        self.topics = Topics(1, self.storage, self.records.extend, lambda: uuid.UUID(int=next(ids)))
        for record in records or []:
            self.topics.replay(record)
        self.topics.open_all()

    def state(self) -> Any:
        return (
            [(topic.name, topic.id, len(topic.partitions), topic.configs) for topic in self.topics],
            {
                (kind, name): self.topics.configs(kind, name)
                for kind in ConfigResource
                for name in self.topics.config_names(kind)
            },
        )


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, match=code.name)


NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c"])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, st.integers(1, 4)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("grow"), NAMES, st.integers(1, 9)),
        st.tuples(st.just("set"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("group"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("producer"), NAMES, st.just(0)),
    ),
    max_size=30,
)


@given(CHANGES)
def test_a_restart_comes_to_the_same(changes: list[tuple[str, str, int]]) -> None:
    cluster = Cluster()
    producer_ids: list[int] = []
    for verb, name, number in changes:
        try:
            match verb:
                case "create":
                    cluster.topics.create(name, number, {"retention.ms": str(number)})
                case "delete":
                    cluster.topics.delete(name)
                case "grow":
                    cluster.topics.add_partitions(name, number)
                case "set":
                    if cluster.topics.get(name):
                        value = str(number) if number else None
                        cluster.topics.set_configs(ConfigResource.TOPIC, name, {"retention.ms": value})
                case "group":
                    value = str(number) if number else None
                    cluster.topics.set_configs(ConfigResource.GROUP, name, {"consumer.session.timeout.ms": value})
                case _:
                    producer_ids.append(cluster.topics.next_producer_id())
        except KafkaError:
            pass
    again = Cluster(cluster.records)
    assert again.state() == cluster.state()
    assert all(again.topics.next_producer_id() > given for given in producer_ids)


def test_a_topic_whose_partitions_can_not_all_be_made_is_not_made_at_all() -> None:
    cluster = Cluster()
    cluster.topics.create("a", 2)
    before = cluster.state()
    cluster.storage.fails_at = 5
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        cluster.topics.create("b", 4)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        cluster.storage.fails_at = 7
        cluster.topics.add_partitions("a", 4)
    assert cluster.storage.removed == ["b-0", "b-1", "b-2", "a-2", "a-3"]
    assert cluster.state() == before == Cluster(cluster.records).state()
    cluster.storage.fails_at = -1
    assert len(cluster.topics.create("b", 4).partitions) == 4


def test_partitions_that_can_not_be_recorded_are_removed() -> None:
    cluster = Cluster()

    def full(records: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    cluster.topics._append = full
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        cluster.topics.create("a", 2)
    assert cluster.storage.removed == ["a-0", "a-1"]


def test_changes_in_slices_take_the_name_meanwhile() -> None:
    topics = Cluster().topics
    making = topics.create_in_slices("a", 3)
    next(making)
    assert topics.get("a") is None
    with refused(ErrorCode.TOPIC_ALREADY_EXISTS):
        topics.create("a", 1)
    topic = in_one_go(making)
    assert topics.get("a") is topic
    growing = topics.add_partitions_in_slices("a", 5)
    next(growing)
    assert len(topic.partitions) == 3
    for change in (lambda: topics.add_partitions("a", 4), lambda: topics.delete("a")):
        with refused(ErrorCode.REQUEST_TIMED_OUT):
            change()
    in_one_go(growing)
    assert len(topic.partitions) == 5
    deleting = topics.delete_in_slices("a")
    next(deleting)
    assert topics.get("a") is None
    with refused(ErrorCode.TOPIC_ALREADY_EXISTS):
        topics.create("a", 1)  # directories of the old one are still there
    in_one_go(deleting)
    assert topics.create("a", 1).id != topic.id


def test_a_creation_that_is_given_up_leaves_nothing() -> None:
    cluster = Cluster()
    making = cluster.topics.create_in_slices("a", 3)
    next(making)
    making.close()
    assert cluster.storage.removed == ["a-0"]
    assert not cluster.records
    assert cluster.topics.create("a", 1).name == "a"


def test_a_topic_is_found_by_name_and_id() -> None:
    topics = Cluster().topics
    topic = topics.create("orders", 3)
    assert topics.get("orders") is topics.by_id(topic.id) is topic
    assert [str(partition) for partition in topics.partitions()] == ["orders-0", "orders-1", "orders-2"]
    assert topics.partition("orders", 3) is None
    assert topics.partition("orders", -1) is None


def test_a_new_topic_of_the_same_name_is_another() -> None:
    cluster = Cluster()
    old = cluster.topics.create("orders", 2, {"retention.ms": "1"})
    cluster.topics.delete("orders")
    new = cluster.topics.create("orders", 1)
    assert old.deleted
    assert cluster.storage.removed == ["orders-0", "orders-1"]
    assert new.id != old.id
    assert new.configs == {}
    assert cluster.topics.by_id(old.id) is None


def test_what_can_not_be() -> None:
    topics = Cluster().topics
    topics.create("my.topic", 2)
    with refused(ErrorCode.TOPIC_ALREADY_EXISTS):
        topics.create("my.topic", 1)
    with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
        topics.create("my_topic", 1)
    with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
        topics.create("__cluster_metadata", 1)
    with refused(ErrorCode.INVALID_PARTITIONS):
        topics.create("none", 0)
    with refused(ErrorCode.POLICY_VIOLATION):
        topics.create("many", 10_001)
    with refused(ErrorCode.INVALID_PARTITIONS):
        topics.add_partitions("my.topic", 2)
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        topics.delete("nowhere")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250, "a\n"])
def test_names_that_no_topic_has(name: str) -> None:
    with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
        check_topic_name(name)


@pytest.mark.parametrize("name", ["a", "A-1._", "x" * 249, "...", "__consumer_offsets"])
def test_names_that_topics_have(name: str) -> None:
    check_topic_name(name)


def test_places_are_those_that_kafka_finds() -> None:
    # By Utils.abs("...".hashCode()) % 50 of Apache Kafka's classes.
    assert [partition_for(key, 50) for key in ("test", "", "my-group", "grüße", "😀", "polygenelubricants")] == [
        48, 0, 12, 23, 49, 0
    ]  # fmt: skip
