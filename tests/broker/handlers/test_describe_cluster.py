"""DescribeCluster: one node, and what the client may do."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.broker.handlers.conftest import Ask, Deny


def test_the_cluster_is_one_node(ask: Ask, broker: Broker) -> None:
    response = ask(DescribeClusterRequest())
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port) == (response.controller_id, "localhost", 9092)
    assert (response.cluster_id, response.cluster_authorized_operations) == (broker.cluster_id, -(2**31))


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_nodes_of_another_kind(endpoint_type: int, code: ErrorCode, ask: Ask) -> None:
    response = ask(DescribeClusterRequest(endpoint_type=endpoint_type))
    assert (response.error_code, response.brokers) == (code, [])


def test_what_the_client_may_do_to_the_cluster(ask: Ask, deny: Deny) -> None:
    everything = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    deny(Operation.ALTER)
    without_alter = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    deny(Operation.DESCRIBE)
    nothing = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    # 8096 is what Kafka 4.2 answers.
    assert everything.cluster_authorized_operations == 8096
    assert without_alter.cluster_authorized_operations == 8096 - (1 << Operation.ALTER)
    assert nothing.cluster_authorized_operations == 0
