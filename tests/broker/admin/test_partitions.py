"""CreatePartitions, DeleteRecords, OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest
from kohort.protocol.messages.delete_records import DeleteRecordsRequest
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.broker.admin.conftest import Ask, Deny, produce

Growth = CreatePartitionsRequest.Topic
Trim = DeleteRecordsRequest.Topic
Question = OffsetForLeaderEpochRequest.Topic


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


def trim(ask: Ask, *offsets: tuple[int, int], topic: str = "there") -> dict[int, tuple[int, int]]:
    partitions = [Trim.Partition(partition_index=index, offset=offset) for index, offset in offsets]
    (outcome,) = ask(DeleteRecordsRequest(topics=[Trim(name=topic, partitions=partitions)])).topics
    return {each.partition_index: (each.error_code, each.low_watermark) for each in outcome.partitions}


def test_records_go_up_to_an_offset(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    produce(broker, "there", 0, 5)
    assert trim(ask, (0, 3), (1, 0)) == {0: (ErrorCode.NONE, 3), 1: (ErrorCode.NONE, 0)}


def test_all_records_go(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    produce(broker, "there", 0, 5)
    assert trim(ask, (0, -1)) == {0: (ErrorCode.NONE, 5)}


def test_what_is_gone_stays_gone(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    produce(broker, "there", 0, 5)
    trim(ask, (0, 4))
    assert trim(ask, (0, 2)) == {0: (ErrorCode.NONE, 4)}


def test_offsets_that_are_not_there(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    assert trim(ask, (0, 1), (1, -2), (7, 0), (-1, 0)) == {
        0: (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        1: (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        7: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        -1: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }


def test_of_a_partition_that_is_named_twice_the_last_offset_counts(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    produce(broker, "there", 0, 5)
    assert trim(ask, (0, 4), (0, 2)) == {0: (ErrorCode.NONE, 2)}


def test_records_of_a_compacted_topic_are_not_deleted(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1, {"cleanup.policy": "compact"})
    assert trim(ask, (0, -1)) == {0: (ErrorCode.POLICY_VIOLATION, -1)}


def test_records_of_the_brokers_own_topics_are_not_deleted(ask: Ask, broker: Broker) -> None:
    broker.topics.create("__consumer_offsets", 1)
    assert trim(ask, (0, -1), topic="__consumer_offsets") == {0: (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)}


def test_an_offline_partition_keeps_its_records(ask: Ask, broker: Broker) -> None:
    log = broker.topics.create("there", 1).partitions[0].log
    log.offline = "the disk is gone"
    assert trim(ask, (0, -1)) == {0: (ErrorCode.KAFKA_STORAGE_ERROR, -1)}


def test_deleting_records_needs_to_be_allowed(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    deny(Operation.DELETE, ResourceType.TOPIC, "there")
    assert trim(ask, (0, -1)) == {0: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)}


def end_of(ask: Ask, epoch: int, *, index: int = 0, current: int = -1) -> tuple[int, int, int]:
    question = Question.Partition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    (topic,) = ask(OffsetForLeaderEpochRequest(topics=[Question(topic="there", partitions=[question])])).topics
    (answer,) = topic.partitions
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"epoch": 0}, (ErrorCode.NONE, 0, 4)),
        ({"epoch": 0, "current": 0}, (ErrorCode.NONE, 0, 4)),
        ({"epoch": 9}, (ErrorCode.NONE, -1, -1)),
        ({"epoch": -1}, (ErrorCode.NONE, -1, -1)),
        ({"epoch": 0, "current": 1}, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
        ({"epoch": 0, "current": -2}, (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)),
        ({"epoch": 0, "index": 1}, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
    ],
)
def test_where_an_epoch_ends(asked: Any, answer: tuple[int, int, int], ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    produce(broker, "there", 0, 4)
    assert end_of(ask, **asked) == answer


def test_the_epoch_of_a_log_that_is_empty_ends_where_it_begins(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert end_of(ask, 0) == (ErrorCode.NONE, 0, 0)


def test_epochs_are_told_to_who_may_describe_the_topic_or_acts_for_the_cluster(
    ask: Ask, broker: Broker, deny: Deny
) -> None:
    broker.topics.create("there", 1)
    produce(broker, "there", 0, 4)
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    as_cluster = end_of(ask, 0)[0]
    deny(Operation.CLUSTER_ACTION)
    assert (as_cluster, end_of(ask, 0)[0]) == (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
