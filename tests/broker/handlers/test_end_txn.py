"""EndTxn: a producer commits or aborts its transaction."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.end_txn import EndTxnRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import add_partitions, init


def end(ask: Ask, producer: Any, *, commit: bool = True, version: int = 4, **fields: Any) -> Any:
    request = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch, **fields}
    return ask(EndTxnRequest(**{"transactional_id": "t", "committed": commit, **request}), version)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_with_a_marker_in_each_partition(commit: bool, ask: Ask, broker: Broker) -> None:
    log = broker.topics.create("there", 1).partitions[0].log
    producer = init(ask)
    add_partitions(ask, producer, ("there", 0))
    assert end(ask, producer, commit=commit).error_code == ErrorCode.NONE
    assert log.log_end_offset == 1


def test_since_version_5_the_producer_gets_the_epoch_of_its_next_transaction(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    producer = init(ask)
    add_partitions(ask, producer, ("there", 0))
    ended = end(ask, producer, version=5)
    assert (ended.producer_id, ended.producer_epoch) == (producer.producer_id, producer.producer_epoch + 1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.INVALID_TXN_STATE),
        ({"transactional_id": "absent"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 9}, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_without_a_transaction_to_end(fields: dict[str, Any], code: ErrorCode, ask: Ask) -> None:
    assert end(ask, init(ask), **fields).error_code == code


def test_who_may_not_write_with_the_transactional_id(ask: Ask, deny: Deny) -> None:
    producer = init(ask)
    deny(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")
    assert end(ask, producer).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
