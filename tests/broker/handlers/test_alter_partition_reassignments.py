"""AlterPartitionReassignments: a partition can stay on the one node, and move nowhere else."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from tests.broker.handlers.conftest import Ask, Deny

Move = AlterPartitionReassignmentsRequest.Topic.Partition


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("there", 0, (1,), ErrorCode.NONE),
        ("there", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("there", 0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (2,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (1, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 9, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("there", -1, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("absent", 0, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_moves(
    topic: str, index: int, replicas: tuple[int, ...] | None, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    moves = [Move(partition_index=index, replicas=replicas)]
    request = AlterPartitionReassignmentsRequest(
        topics=[AlterPartitionReassignmentsRequest.Topic(name=topic, partitions=moves)]
    )
    (outcome,) = ask(request).responses[0].partitions
    assert (outcome.partition_index, outcome.error_code) == (index, code)


def test_moves_need_to_be_allowed(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    response = ask(AlterPartitionReassignmentsRequest())
    assert (response.error_code, response.responses) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
