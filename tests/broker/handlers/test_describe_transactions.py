"""DescribeTransactions: transactional ids and the partitions of their open transactions."""

from __future__ import annotations

from typing import Any

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import add_partitions, init


def describe(ask: Ask, transactional_id: str) -> Any:
    return ask(DescribeTransactionsRequest(transactional_ids=(transactional_id,))).transaction_states[0]


def test_an_open_transaction(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    producer = init(ask)
    add_partitions(ask, producer, ("there", 1))
    state = describe(ask, "t")
    assert (state.error_code, state.transaction_state, state.producer_id) == (0, "Ongoing", producer.producer_id)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("there", (1,))]


def test_an_unknown_transactional_id(ask: Ask) -> None:
    assert describe(ask, "absent").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_topics_that_may_not_be_described_are_left_out(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    add_partitions(ask, init(ask), ("there", 0))
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    assert describe(ask, "t").topics == []


def test_who_may_not_describe_the_transactional_id(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "t")
    assert describe(ask, "t").error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
