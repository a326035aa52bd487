"""AddPartitionsToTxn: partitions of a transaction are added, or verified (KIP-890)."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import add_partitions, init


def verify(ask: Ask, producer: Any) -> Any:
    """Asks as a broker does whether partition 0 of "there" takes part in the producer's transaction."""
    transaction = AddPartitionsToTxnRequest.Transaction(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=True,
        topics=[AddPartitionsToTxnTopic(name="there", partitions=(0,))],
    )
    return ask(AddPartitionsToTxnRequest(transactions=[transaction]))


def test_all_partitions_are_added_or_none(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    producer = init(ask)
    assert add_partitions(ask, producer, ("there", 0)) == {("there", 0): ErrorCode.NONE}
    assert add_partitions(ask, producer, ("there", 1), ("absent", 0)) == {
        ("there", 1): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_brokers_verify_partitions(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    producer = init(ask)
    codes = []
    for _ in range(2):
        (result,) = verify(ask, producer).results_by_transaction
        codes.append(result.topic_results[0].results_by_partition[0].partition_error_code)
        add_partitions(ask, producer, ("there", 0))
    assert codes == [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.NONE]


def test_only_brokers_ask_about_several_transactions(ask: Ask, deny: Deny) -> None:
    producer = init(ask)
    deny(Operation.CLUSTER_ACTION)
    response = verify(ask, producer)
    assert (response.error_code, response.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


def test_clients_add_no_internal_topics_to_transactions(ask: Ask, broker: Broker) -> None:
    broker.topics.create("__consumer_offsets", 1)
    place = ("__consumer_offsets", 0)
    assert add_partitions(ask, init(ask), place) == {place: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_producers_must_be_allowed_to_write(
    kind: ResourceType, code: ErrorCode, ask: Ask, broker: Broker, deny: Deny
) -> None:
    broker.topics.create("there", 1)
    producer = init(ask)
    deny(Operation.WRITE, kind)
    assert add_partitions(ask, producer, ("there", 0)) == {("there", 0): code}
