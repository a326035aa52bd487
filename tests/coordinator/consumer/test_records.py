"""Consumer groups in the log: a restart brings all of it back, and compaction may drop and delay what it likes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.records import read_current_assignment
from kohort.coordinator.consumer.replaying import replay
from kohort.coordinator.modern.states import MemberState
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key
from kohort.protocol.stored.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kohort.protocol.stored.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from kohort.protocol.topic_partition import TopicIdPartition
from tests.coordinator.consumer.driver import GROUP, Driver, Reader, joined, reconcile


def lively(seed: int) -> Driver:
    """A driver whose group has had a random life."""
    chance = random.Random(seed)
    driver = Driver({"in": 4, "other": 3})
    readers: dict[str, Reader] = {}
    for _ in range(60):
        name = chance.choice("abcd")
        reader = readers.get(name)
        move = chance.randrange(8)
        if reader is None:
            instance = f"i-{name}" if name in "ab" else None
            options: dict[str, Any] = {"regex": "o.*"} if name == "d" else {}
            readers[name] = Reader(driver, name, "in", instance=instance, **options).join()
        elif move == 0:
            reader.leave(-2 if reader.instance and chance.random() < 0.6 else -1)
            del readers[name]
        elif move == 1:
            driver.topic("in", driver.cluster.topics["in"] + 1)
        elif move == 2:
            reader.beat(subscribed_topic_names=chance.choice([("in",), ("other",), ("in", "other"), ()]))
        elif move == 3 and driver.jobs:
            driver.resolve()
        elif move == 4:
            driver.sleep(chance.choice([100, 11_000]))
        else:
            reader.beat()
            if reader.error != "NONE":
                del readers[name]
        assert_one_holder(driver)
    return driver


def assert_one_holder(driver: Driver) -> None:
    """No partition is with two members, nor with one that has to revoke it and another."""
    group = driver.shard.consumer.get(GROUP)
    members = {} if group is None else group.members
    held = Counter(partition for member in members.values() for partition, _ in member.current.held())
    assert max(held.values(), default=1) == 1, held


@pytest.mark.parametrize("seed", range(20))
def test_a_restart_brings_everything_back(seed: int) -> None:
    driver = lively(seed)
    assert driver.dump(driver.replayed()) == driver.dump()


@pytest.mark.parametrize("seed", range(20))
def test_compaction_makes_no_difference(seed: int) -> None:
    """Any record that a later one of its key replaces may be gone, and so may tombstones that nothing precedes."""
    driver, chance = lively(seed), random.Random(seed)
    for _ in range(5):
        latest = {key: position for position, (key, _) in enumerate(driver.log)}
        kept = [
            (key, value)
            for position, (key, value) in enumerate(driver.log)
            if latest[key] == position or chance.random() < 0.3
        ]
        assert driver.dump(driver.replayed(kept)) == driver.dump()


def test_deleting_a_group_leaves_tombstones_alone() -> None:
    driver = Driver({"in": 2, "orders": 1})
    first, second = Reader(driver, "a", "in").join(), Reader(driver, "b", regex="or.*").join()
    driver.resolve()
    reconcile(driver, first, second)
    results: list[Any] = []
    driver.perform(driver.shard.delete_groups([GROUP], results.append))
    assert [result.error_code for result in results[0]] == [68]  # NON_EMPTY_GROUP
    first.leave()
    second.leave()
    driver.perform(driver.shard.delete_groups([GROUP], results.append))
    assert [result.error_code for result in results[1]] == [0]
    assert driver.shard.list_groups() == []
    latest = dict(driver.log)
    assert [decode_key(OFFSETS_TOPIC, key)[1] for key, value in latest.items() if value is not None] == []


def test_what_a_member_has_is_fenced_by_the_epoch_it_was_given_in() -> None:
    topic_id = Driver().cluster.topic_id("in")
    assert topic_id is not None
    old = TopicPartitions(topic_id=topic_id, partitions=(0, 1))
    new = TopicPartitions(topic_id=topic_id, partitions=(2,), assignment_epochs=(3,))
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=5, state=7, assigned_partitions=[old], partitions_pending_revocation=[new]
    )
    current = read_current_assignment(value)
    assert current.state is MemberState.UNRELEASED, "a newer server's state"
    assert current.assignment_epochs == {
        TopicIdPartition(topic_id, 0): 5,
        TopicIdPartition(topic_id, 1): 5,
        TopicIdPartition(topic_id, 2): 3,
    }


def test_topics_that_kafka_40_wrote_are_removed_with_the_next_epoch() -> None:
    driver = Driver()
    (reader,) = joined(driver, "a")
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    assert not replay(driver.group, key, ConsumerGroupPartitionMetadataValue())
    Reader(driver, "b").join()
    assert "4-" in driver.kinds
    Reader(driver, "c").join()
    assert "4-" not in driver.kinds
    assert reader.beat().error == "NONE"


def test_records_of_a_member_in_any_order() -> None:
    driver = Driver()
    joined(driver, "a", "b")
    for seed in range(20):
        log = list(dict(driver.log).items())
        random.Random(seed).shuffle(log)
        assert driver.dump(driver.replayed(log)) == driver.dump()


def test_a_group_says_what_it_is() -> None:
    assert repr(ConsumerGroup("g")) == "<consumer group 'g' Empty epoch=1 assignment_epoch=1 members=0>"
