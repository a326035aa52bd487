"""DescribeCluster: the one node, and the operations that the client is allowed."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import OPERATIONS_NOT_REQUESTED, Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

SERVED: Final = Served(DescribeClusterRequest, versions=(0, 2))

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Describes the cluster as a broker does; a request for controllers is refused (KIP-919)."""
    if request.endpoint_type != BROKERS:
        return _refused(request.endpoint_type)
    broker = context.broker
    host, port = context.session.advertised
    requested = request.include_cluster_authorized_operations
    operations = context.cluster_operations() if requested else OPERATIONS_NOT_REQUESTED
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[DescribeClusterResponse.Broker(broker_id=broker.node_id, host=host, port=port, rack=broker.rack)],
        cluster_authorized_operations=operations,
    )


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to a broker, but it asks for controllers.",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {endpoint_type}."
    )
