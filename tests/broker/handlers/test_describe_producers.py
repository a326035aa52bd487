"""DescribeProducers: the producers of a partition."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from tests.broker.handlers.conftest import NOW, Ask, Deny

pytestmark = pytest.mark.usefixtures("open_transaction")


def producers(ask: Ask, topic: str, index: int) -> Any:
    request = DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name=topic, partition_indexes=(index,))])
    return ask(request).topics[0].partitions[0]


def test_a_producer_with_an_open_transaction(ask: Ask) -> None:
    (producer,) = producers(ask, "there", 0).active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.current_txn_start_offset) == (7, 3, 2)
    assert (producer.last_timestamp, producer.coordinator_epoch) == (NOW, -1)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("there", 1, ErrorCode.NONE),
        ("there", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("absent", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_where_no_producer_is_known(topic: str, index: int, code: ErrorCode, ask: Ask) -> None:
    described = producers(ask, topic, index)
    assert (described.error_code, described.active_producers) == (code, [])


def test_producers_are_told_to_who_may_read_the_topic(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.TOPIC, "there")
    assert producers(ask, "there", 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
