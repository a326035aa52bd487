from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from tests.broker.handlers.conftest import Ask, Deny

Topic = DescribeTopicPartitionsRequest.Topic
Cursor = DescribeTopicPartitionsRequest.Cursor


@pytest.fixture(autouse=True)
def topics(broker: Broker) -> None:
    broker.topics.create("b", 3)
    broker.topics.create("a", 2)
    broker.topics.create("c", 1)


def page(ask: Ask, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    return ask(
        DescribeTopicPartitionsRequest(
            topics=[Topic(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
    )


def places(response: Any) -> list[tuple[str, int]]:
    return [(topic.name, partition.partition_index) for topic in response.topics for partition in topic.partitions]


def next_of(response: Any) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


ALL = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 2000, 2**31 - 1])
def test_pages_of_any_size_make_up_the_whole(limit: int, ask: Ask) -> None:
    seen: list[tuple[str, int]] = []
    cursor = None
    for _ in range(len(ALL)):
        response = page(ask, limit=limit, cursor=cursor)
        assert len(places(response)) <= limit
        seen += places(response)
        cursor = next_of(response)
        if cursor is None:
            break
    assert (seen, cursor) == (ALL, None)


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
def test_a_page_has_one_partition_at_least(limit: int, ask: Ask) -> None:
    assert len(places(page(ask, limit=limit))) == 1


@pytest.mark.parametrize("settings", [{"max.request.partition.size.limit": 4}])
def test_the_broker_limits_pages(ask: Ask) -> None:
    assert next_of(page(ask)) == ("b", 2)


def test_topics_that_are_named(ask: Ask) -> None:
    response = page(ask, "c", "absent", "a b", "c")
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("c", ErrorCode.NONE),
    ]


def test_a_cursor_at_a_topic_that_is_gone_goes_on_behind_it(ask: Ask) -> None:
    assert places(page(ask, cursor=("aa", 1))) == ALL[2:]


def test_a_cursor_behind_a_topics_partitions(ask: Ask) -> None:
    assert places(page(ask, cursor=("b", 9))) == ALL[5:]


@pytest.mark.parametrize("cursor", [("b", -1), ("a", 0)], ids=["negative", "not among the topics"])
def test_cursors_that_make_no_sense(cursor: tuple[str, int], ask: Ask) -> None:
    response = page(ask, "b", cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("b", ErrorCode.INVALID_REQUEST)]


def test_one_node_leads_and_holds_everything(ask: Ask) -> None:
    (topic,) = page(ask, "c").topics
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes, partition.isr_nodes) == (
        1, 0, (1,), (1,),
    )  # fmt: skip
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ((), (), ())
    assert topic.topic_authorized_operations == 3576  # Kafka's number for everything


def test_an_offline_partition_has_no_leader(ask: Ask, broker: Broker) -> None:
    found = broker.topics.partition("c", 0)
    assert found is not None
    found.log.offline = "the disk is gone"
    (partition,) = page(ask, "c").topics[0].partitions
    assert (partition.leader_id, partition.offline_replicas) == (-1, (1,))


def test_what_may_not_be_described_is_refused_where_it_is_named_and_hidden_where_not(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "a")
    named = [(topic.name, topic.error_code) for topic in page(ask, "a", "c").topics]
    assert named == [("c", ErrorCode.NONE), ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    assert [topic.name for topic in page(ask).topics] == ["b", "c"]
