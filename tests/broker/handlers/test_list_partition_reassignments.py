"""ListPartitionReassignments: there never is one."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.handlers.conftest import Ask, Deny


def test_no_move_is_under_way(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    response = ask(ListPartitionReassignmentsRequest(topics=None))
    deny(Operation.DESCRIBE)
    refused = ask(ListPartitionReassignmentsRequest(topics=None))
    assert (response.error_code, response.topics) == (ErrorCode.NONE, [])
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
