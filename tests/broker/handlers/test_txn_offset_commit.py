"""TxnOffsetCommit: offsets that count once their transaction is committed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.test_end_txn import end
from tests.broker.handlers.transactions import init


def commit(ask: Ask, producer: Any, *places: tuple[str, int], version: int = 5) -> dict[Any, int]:
    wanted = TxnOffsetCommitRequest.Topic
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[
            wanted(name=name, partitions=[wanted.Partition(partition_index=index, committed_offset=7)])
            for name, index in places
        ],
    )
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in ask(request, version).topics
        for partition in topic.partitions
    }


def committed(ask: Ask) -> int:
    topic = OffsetFetchRequest.Group.Topic(name="there", partition_indexes=(0,))
    (group,) = ask(OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=[topic])]), 9).groups
    offset = group.topics[0].partitions[0].committed_offset
    assert isinstance(offset, int)
    return offset


def test_offsets_count_once_the_transaction_is_committed(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    producer = init(ask)
    assert commit(ask, producer, ("there", 0), ("absent", 0)) == {
        ("there", 0): ErrorCode.NONE,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    before = committed(ask)
    end(ask, producer)
    assert (before, committed(ask)) == (-1, 7)


def test_before_version_5_the_offsets_have_to_be_added_to_the_transaction_first(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    codes = commit(ask, init(ask), ("there", 0), version=4)
    assert codes == {("there", 0): ErrorCode.TRANSACTION_ABORTABLE}


@pytest.mark.parametrize(
    ("operation", "kind", "code"),
    [
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (Operation.READ, ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_producers_must_be_allowed(
    operation: Operation, kind: ResourceType, code: ErrorCode, ask: Ask, broker: Broker, deny: Deny
) -> None:
    broker.topics.create("there", 1)
    producer = init(ask)
    deny(operation, kind)
    assert commit(ask, producer, ("there", 0)) == {("there", 0): code}


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_old_clients_do_not_know_that_a_coordinator_is_loading(
    version: int, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    producer = init(ask)
    broker.groups.start()
    for entry in broker.groups._entries:
        entry.state = ShardState.LOADING
    assert commit(ask, producer, ("there", 0), version=version) == {("there", 0): code}


def test_topics_by_id(ask: Ask, broker: Broker, deny: Deny) -> None:
    there, hidden = broker.topics.create("there", 1), broker.topics.create("hidden", 1)
    deny(Operation.READ, ResourceType.TOPIC, "hidden")
    wanted, absent = TxnOffsetCommitRequest.Topic, UUID(int=9)
    producer = init(ask)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[
            wanted(topic_id=topic_id, partitions=[wanted.Partition(partition_index=0, committed_offset=7)])
            for topic_id in (there.id, hidden.id, absent)
        ],
    )
    assert {(topic.topic_id, topic.partitions[0].error_code) for topic in ask(request, 6).topics} == {
        (there.id, ErrorCode.NONE),
        (hidden.id, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (absent, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    end(ask, producer)
    assert committed(ask) == 7


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_is_gone(version: int, code: ErrorCode, ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    producer = init(ask)
    wanted = TxnOffsetCommitRequest.Topic
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id_or_member_epoch=3,
        member_id="m",
        topics=[
            wanted(
                name="there", topic_id=topic.id, partitions=[wanted.Partition(partition_index=0, committed_offset=7)]
            )
        ],
    )
    (answered,) = ask(request, version).topics
    assert [each.error_code for each in answered.partitions] == [code]
