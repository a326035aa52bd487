"""DescribeCluster: API 60."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible=0):
    """Asks which nodes make up the cluster, brokers or controllers, and what the caller may do to it.

    - v1: EndpointType: controllers can be asked about too
    - v2: IncludeFencedBrokers
    """

    include_cluster_authorized_operations: bool = boolean("True to also hear what the caller may do to the cluster.")
    endpoint_type: int = int8("Which kind of node to list: 1 = brokers, 2 = controllers.", since=1, default=1)
    include_fenced_brokers: bool = boolean(
        "True to list registered brokers that are fenced as well as the live ones.", since=2
    )


class DescribeClusterResponse(Response, key=60, versions="0-2", flexible=0):
    """Names the cluster, its controller and its nodes with their addresses.

    - v1: EndpointType; new top-level errors for a wrong or unsupported endpoint type
    - v2: brokers have IsFenced
    """

    class Broker(Struct):
        broker_id: int = int32("The node's id.")
        host: str = string("Host name or address at which to reach the node.")
        port: int = int32("TCP port at which to reach the node.")
        rack: str | None = string("Rack the node stands in; null if it has none configured.", nullable=True)
        is_fenced: bool = boolean("True if it is registered but fenced, so it leads and serves nothing.", since=2)

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    endpoint_type: int = int8("Which kind of node is listed: 1 = brokers, 2 = controllers.", since=1, default=1)
    cluster_id: str = string("Id of the cluster the answering node is part of.")
    controller_id: int = int32(
        "From a controller: the active one; from a broker: any live broker; -1 = unknown.", default=-1
    )
    brokers: list[Broker] = array(Broker, "The nodes listed: brokers, or controllers if those were asked for.")
    cluster_authorized_operations: int = int32(
        "One bit per operation the caller may do to the cluster; -2147483648 = not asked.", default=-2147483648
    )
