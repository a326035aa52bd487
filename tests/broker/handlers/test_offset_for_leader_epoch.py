"""OffsetForLeaderEpoch: where a leader epoch ends."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.broker.handlers.conftest import Ask, Deny, append_records

Question = OffsetForLeaderEpochRequest.Topic


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
    append_records(broker, "there", 0, 4)
    assert end_of(ask, **asked) == answer


def test_the_epoch_of_a_log_that_is_empty_ends_where_it_begins(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert end_of(ask, 0) == (ErrorCode.NONE, 0, 0)


def test_epochs_are_told_to_who_may_describe_the_topic_or_acts_for_the_cluster(
    ask: Ask, broker: Broker, deny: Deny
) -> None:
    broker.topics.create("there", 1)
    append_records(broker, "there", 0, 4)
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    as_cluster = end_of(ask, 0)[0]
    deny(Operation.CLUSTER_ACTION)
    assert (as_cluster, end_of(ask, 0)[0]) == (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
