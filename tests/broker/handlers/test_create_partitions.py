"""CreatePartitions: topics grow."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest
from tests.broker.handlers.conftest import Ask, Deny

Growth = CreatePartitionsRequest.Topic


def grow(name: str, count: int, assignments: list[tuple[int, ...]] | None = None) -> Growth:
    by_hand = None if assignments is None else [Growth.Assignment(broker_ids=nodes) for nodes in assignments]
    return Growth(name=name, count=count, assignments=by_hand)


@pytest.mark.parametrize("assignments", [None, [(1,), (1,)]], ids=["left to the broker", "by hand"])
def test_a_topic_grows(assignments: list[tuple[int, ...]] | None, ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    (grown,) = ask(CreatePartitionsRequest(topics=[grow("there", 3, assignments)])).results
    assert (grown.error_code, grown.error_message, len(topic.partitions)) == (ErrorCode.NONE, None, 3)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (grow("there", 2), ErrorCode.INVALID_PARTITIONS),
        (grow("there", 1), ErrorCode.INVALID_PARTITIONS),
        (grow("there", -1), ErrorCode.INVALID_PARTITIONS),
        (grow("there", 10_003), ErrorCode.POLICY_VIOLATION),
        (grow("there", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (grow("absent", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grow("__consumer_offsets", 3), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (grow("there", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("there", 3, [(1,), (1,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("there", 3, [(2,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("there", 3, [(1, 1)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_is_refused(wanted: Growth, code: ErrorCode, ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 2)
    broker.topics.create("__consumer_offsets", 2)
    (refused,) = ask(CreatePartitionsRequest(topics=[wanted])).results
    assert refused.error_code == code
    assert len(topic.partitions) == 2


def test_growth_asked_for_twice_is_refused(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    (refused,) = ask(CreatePartitionsRequest(topics=[grow("there", 2), grow("there", 3)])).results
    assert (refused.error_code, len(topic.partitions)) == (ErrorCode.INVALID_REQUEST, 1)


def test_the_limit_of_growth_counts_all_topics_of_a_request(ask: Ask, broker: Broker) -> None:
    broker.topics.create("one", 1)
    broker.topics.create("two", 1)
    request = CreatePartitionsRequest(topics=[grow("one", 6000), grow("two", 6000)], validate_only=True)
    assert [result.error_code for result in ask(request).results] == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]


def test_growth_that_is_only_checked(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    (checked,) = ask(CreatePartitionsRequest(topics=[grow("there", 2)], validate_only=True)).results
    assert (checked.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


def test_growth_needs_to_be_allowed(ask: Ask, broker: Broker, deny: Deny) -> None:
    topic = broker.topics.create("there", 1)
    deny(Operation.ALTER, ResourceType.TOPIC, "there")
    (refused,) = ask(CreatePartitionsRequest(topics=[grow("there", 2)])).results
    assert (refused.error_code, len(topic.partitions)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1)
