"""DescribeProducers and WriteTxnMarkers: what is known of transactions, and how a hanging one is ended."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kohort.protocol.records.plain import encode_records
from tests.broker.admin.conftest import NOW, Ask, Deny, append, produce

Marker = WriteTxnMarkersRequest.Marker


def producers(ask: Ask, topic: str, index: int) -> Any:
    request = DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name=topic, partition_indexes=(index,))])
    return ask(request).topics[0].partitions[0]


def mark(ask: Ask, *places: tuple[str, tuple[int, ...]], version: int = 2, **fields: Any) -> dict[Any, int]:
    topics = [Marker.Topic(name=name, partition_indexes=indexes) for name, indexes in places]
    marker = Marker(**{"producer_id": 7, "producer_epoch": 3, "topics": topics, **fields})
    (outcome,) = ask(WriteTxnMarkersRequest(markers=[marker]), version).markers
    assert outcome.producer_id == marker.producer_id
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in outcome.topics
        for partition in topic.partitions
    }


@pytest.fixture(autouse=True)
def open_transaction(broker: Broker) -> None:
    broker.topics.create("there", 2)
    produce(broker, "there", 0, 2)
    batch = encode_records([(b"k", b"v")], NOW, producer_id=7, producer_epoch=3, transactional=True)
    append(broker, "there", 0, batch)


def test_a_producer_with_an_open_transaction(ask: Ask) -> None:
    (producer,) = producers(ask, "there", 0).active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.current_txn_start_offset) == (7, 3, 2)
    assert (producer.last_timestamp, producer.coordinator_epoch) == (NOW, -1)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_ends_the_transaction(commit: bool, version: int, ask: Ask, broker: Broker) -> None:
    ended = mark(ask, ("there", (0,)), version=version, transaction_result=commit, coordinator_epoch=4)
    assert ended == {("there", 0): ErrorCode.NONE}
    (producer,) = producers(ask, "there", 0).active_producers
    assert (producer.current_txn_start_offset, producer.coordinator_epoch) == (-1, 4)
    partition = broker.topics.partition("there", 0)
    assert partition is not None
    assert len(partition.log.aborted_transactions(0, 10)) == (0 if commit else 1)


def test_markers_for_what_is_not_there(ask: Ask) -> None:
    assert mark(ask, ("there", (9, -1)), ("absent", (0,))) == {
        ("there", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("there", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_marker_of_an_old_epoch_is_refused(ask: Ask) -> None:
    assert mark(ask, ("there", (0,)), producer_epoch=2) == {("there", 0): ErrorCode.INVALID_PRODUCER_EPOCH}


def test_a_marker_of_an_old_coordinator_is_refused(ask: Ask) -> None:
    mark(ask, ("there", (0,)), coordinator_epoch=4)
    late = mark(ask, ("there", (0,)), coordinator_epoch=3)
    assert late == {("there", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}


@pytest.mark.parametrize("fields", [{"producer_id": -1}, {"producer_epoch": -1}])
def test_a_marker_of_nobodys_is_refused(fields: dict[str, int], ask: Ask, broker: Broker) -> None:
    assert mark(ask, ("there", (1,)), **fields) == {("there", 1): ErrorCode.INVALID_REQUEST}
    assert producers(ask, "there", 1).active_producers == []


def test_no_markers(ask: Ask) -> None:
    assert ask(WriteTxnMarkersRequest()).markers == []


def test_markers_come_from_who_may_alter_the_cluster_or_acts_for_it(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    as_broker = mark(ask, ("there", (0,)))
    deny(Operation.CLUSTER_ACTION)
    assert as_broker == {("there", 0): ErrorCode.NONE}
    assert mark(ask, ("there", (0,))) == {("there", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


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
