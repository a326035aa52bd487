"""WriteTxnMarkers: how a hanging transaction is ended."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.test_describe_producers import producers

pytestmark = pytest.mark.usefixtures("open_transaction")

Marker = WriteTxnMarkersRequest.Marker


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
