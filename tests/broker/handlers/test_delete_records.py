"""DeleteRecords: the log start offset moves up."""

from __future__ import annotations

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_records import DeleteRecordsRequest
from tests.broker.handlers.conftest import Ask, Deny, append_records

Trim = DeleteRecordsRequest.Topic


def trim(ask: Ask, *offsets: tuple[int, int], topic: str = "there") -> dict[int, tuple[int, int]]:
    partitions = [Trim.Partition(partition_index=index, offset=offset) for index, offset in offsets]
    (outcome,) = ask(DeleteRecordsRequest(topics=[Trim(name=topic, partitions=partitions)])).topics
    return {each.partition_index: (each.error_code, each.low_watermark) for each in outcome.partitions}


def test_records_go_up_to_an_offset(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    append_records(broker, "there", 0, 5)
    assert trim(ask, (0, 3), (1, 0)) == {0: (ErrorCode.NONE, 3), 1: (ErrorCode.NONE, 0)}


def test_all_records_go(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    append_records(broker, "there", 0, 5)
    assert trim(ask, (0, -1)) == {0: (ErrorCode.NONE, 5)}


def test_what_is_gone_stays_gone(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    append_records(broker, "there", 0, 5)
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
    append_records(broker, "there", 0, 5)
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
