"""OffsetFetch: committed offsets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import commit

Group = OffsetFetchRequest.Group
Offsets = dict[tuple[Any, int], tuple[int, int]]


@pytest.fixture(autouse=True)
def committed(ask: Ask, broker: Broker) -> None:
    """Offset 5 of partition 0 of "there"."""
    broker.topics.create("there", 2)
    commit(ask, ("there", 0))


def offsets(found: Any, *, by_id: bool = False) -> Offsets:
    return {
        (topic.topic_id if by_id else topic.name, each.partition_index): (each.error_code, each.committed_offset)
        for topic in found.topics
        for each in topic.partitions
    }


def fetch(ask: Ask, topics: list[Group.Topic] | None, version: int = 9) -> Any:
    (group,) = ask(OffsetFetchRequest(groups=[Group(group_id="g", topics=topics)]), version).groups
    return group


def test_committed_offsets_and_minus_1_for_others(ask: Ask) -> None:
    found = fetch(ask, [Group.Topic(name="there", partition_indexes=(0, 1))])
    assert offsets(found) == {("there", 0): (ErrorCode.NONE, 5), ("there", 1): (ErrorCode.NONE, -1)}


def test_all_offsets_of_a_group(ask: Ask) -> None:
    assert offsets(fetch(ask, None)) == {("there", 0): (ErrorCode.NONE, 5)}


def test_before_version_8_there_is_one_group(ask: Ask) -> None:
    topics = [OffsetFetchRequest.Topic(name="there", partition_indexes=(0,))]
    assert offsets(ask(OffsetFetchRequest(group_id="g", topics=topics), 7)) == {("there", 0): (ErrorCode.NONE, 5)}


def test_since_version_10_topics_have_ids(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.get("there")
    assert topic is not None
    wanted = [Group.Topic(topic_id=which, partition_indexes=(0,)) for which in (topic.id, UUID(int=5))]
    assert offsets(fetch(ask, wanted, 10), by_id=True) == {
        (topic.id, 0): (ErrorCode.NONE, 5),
        (UUID(int=5), 0): (ErrorCode.UNKNOWN_TOPIC_ID, -1),
    }


def test_topics_that_may_not_be_described(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    named = fetch(ask, [Group.Topic(name="there", partition_indexes=(0,))])
    assert offsets(named) == {("there", 0): (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)}
    assert offsets(fetch(ask, None)) == {}


@pytest.mark.parametrize("version", [1, 7, 9])
def test_who_may_not_describe_the_group(version: int, ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.GROUP, "g")
    if version >= 8:
        assert fetch(ask, None, version).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        return
    topics = [OffsetFetchRequest.Topic(name="there", partition_indexes=(0,))]
    response = ask(OffsetFetchRequest(group_id="g", topics=topics), version)
    # Version 1 has no place for an error but beside each partition.
    code = response.error_code if version > 1 else response.topics[0].partitions[0].error_code
    assert code == ErrorCode.GROUP_AUTHORIZATION_FAILED
