"""OffsetDelete: committed offsets of topics that no member subscribes to are deleted."""

from __future__ import annotations

from typing import Any

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import commit

Topic = OffsetDeleteRequest.Topic


def delete(ask: Ask, *places: tuple[str, int], group_id: str = "g") -> Any:
    topics = [Topic(name=name, partitions=[Topic.Partition(partition_index=index)]) for name, index in places]
    response = ask(OffsetDeleteRequest(group_id=group_id, topics=topics))
    codes = {topic.name: [each.error_code for each in topic.partitions] for topic in response.topics}
    return response.error_code, codes


def test_each_partition_has_its_outcome(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    commit(ask, ("there", 0))
    assert delete(ask, ("there", 0), ("absent", 0)) == (
        ErrorCode.NONE,
        {"there": [ErrorCode.NONE], "absent": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]},
    )


def test_a_group_that_does_not_exist(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert delete(ask, ("there", 0), ("absent", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, {})


def test_a_topic_that_may_not_be_read(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    commit(ask, ("there", 0))
    deny(Operation.READ, ResourceType.TOPIC, "there")
    assert delete(ask, ("there", 0))[1] == {"there": [ErrorCode.TOPIC_AUTHORIZATION_FAILED]}


def test_who_may_not_delete_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.DELETE, ResourceType.GROUP, "g")
    assert delete(ask, ("there", 0)) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, {})
