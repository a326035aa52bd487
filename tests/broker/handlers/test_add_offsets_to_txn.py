"""AddOffsetsToTxn: a group's offsets take part in a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import init


def add_offsets(ask: Ask, producer: Any, **fields: Any) -> int:
    request = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch, **fields}
    code = ask(AddOffsetsToTxnRequest(**{"transactional_id": "t", "group_id": "g", **request}), 3).error_code
    assert isinstance(code, int)
    return code


def test_the_groups_partition_of_the_offsets_topic_is_added(ask: Ask) -> None:
    assert add_offsets(ask, init(ask)) == ErrorCode.NONE
    (state,) = ask(DescribeTransactionsRequest(transactional_ids=("t",))).transaction_states
    assert [topic.topic for topic in state.topics] == ["__consumer_offsets"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": "absent"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": 999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 9}, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_producers_that_are_refused(fields: dict[str, Any], code: ErrorCode, ask: Ask) -> None:
    assert add_offsets(ask, init(ask), **fields) == code


@pytest.mark.parametrize(
    ("operation", "kind", "code"),
    [
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_producers_must_be_allowed(
    operation: Operation, kind: ResourceType, code: ErrorCode, ask: Ask, deny: Deny
) -> None:
    producer = init(ask)
    deny(operation, kind)
    assert add_offsets(ask, producer) == code
