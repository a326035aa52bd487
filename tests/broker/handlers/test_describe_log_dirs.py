"""DescribeLogDirs: the data directory and the sizes of its logs."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.handlers.conftest import Ask, Deny, append_records


def test_the_directory_with_its_logs(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 2)
    broker.topics.create("other", 1)
    append_records(broker, "there", 1, 3)
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    sizes = {
        (each.name, partition.partition_index): partition.partition_size
        for each in result.topics
        for partition in each.partitions
    }
    assert result.log_dir == str(broker.log_manager.directory)
    assert sizes == {("other", 0): 0, ("there", 0): 0, ("there", 1): topic.partitions[1].log.size}
    assert 0 < result.usable_bytes <= result.total_bytes


def test_only_the_logs_that_are_asked_for(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    wanted = DescribeLogDirsRequest.Topic
    asked = [wanted(topic="there", partitions=(1, 1, 9)), wanted(topic="absent", partitions=(0,))]
    (result,) = ask(DescribeLogDirsRequest(topics=asked)).results
    assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in result.topics] == [
        ("there", [1])
    ]


def test_offline_logs_are_left_out(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1).partitions[0].log.offline = "the disk is gone"
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    assert result.topics == []


def test_a_directory_that_is_gone(ask: Ask, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.log_manager, "directory", broker.log_manager.directory / "gone")
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    assert (result.error_code, result.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, str(broker.log_manager.directory))


def test_the_directory_is_not_told_to_everybody(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE)
    response = ask(DescribeLogDirsRequest(topics=None))
    assert (response.error_code, response.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
