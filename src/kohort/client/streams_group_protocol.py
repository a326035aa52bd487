"""Which group protocol a streams application has with a cluster (`group_protocol="auto"`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from kohort.client.administration.groups import BY_COORDINATOR
from kohort.client.administration.request_router import Failure, Node, Outcomes, RequestRouter
from kohort.client.cluster import Cluster
from kohort.client.errors import kafka_error
from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

Chosen = Literal["streams", "classic"]

_NO_MEMBERS: Final = frozenset({"Empty", "Dead"})


async def choose_group_protocol(cluster: Cluster, group_id: str, *, timeout_ms: int = 60_000) -> Chosen:
    """Returns "streams" where the cluster serves streams groups, and the group isn't a classic one with members.

    Raises:
        KafkaError: the user may not describe the group, or the coordinator wasn't ready in time.
        NoBrokerError, RequestTimeoutError: no broker answered in time.
    """
    router = RequestRouter(cluster, timeout_ms)

    async def ask(node: Node, group_ids: Sequence[str]) -> Mapping[str, Chosen | Failure]:
        chosen: dict[str, Chosen | Failure] = {each: await _choose(node, each) for each in group_ids}
        return chosen

    outcomes: Outcomes[str, Chosen] = await router.ask_nodes(
        [group_id], BY_COORDINATOR, ask, router.deadline(timeout_ms)
    )
    return outcomes.checked()[group_id]


async def _choose(node: Node, group_id: str) -> Chosen | Failure:
    # Brokers list these APIs even while the feature streams.version is off. They refuse them then.
    if not (node.speaks(StreamsGroupHeartbeatRequest) and node.speaks(StreamsGroupDescribeRequest)):
        return "classic"
    described = await node.ask(StreamsGroupDescribeRequest(group_ids=(group_id,)), StreamsGroupDescribeResponse)
    match described.groups[0].error_code:
        case ErrorCode.NONE:
            return "streams"
        case ErrorCode.UNSUPPORTED_VERSION:
            return "classic"
        case ErrorCode.GROUP_ID_NOT_FOUND:
            listed = await node.ask(DescribeGroupsRequest(groups=(group_id,)), DescribeGroupsResponse)
            group = listed.groups[0]
            # The group may have gone to another coordinator, or is being loaded: then this one doesn't know.
            if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                return kafka_error(group.error_code, group.error_message)
            if group.group_state not in _NO_MEMBERS and group.protocol_type == PROTOCOL_TYPE:
                return "classic"
            return "streams"
        case code:
            return kafka_error(code, described.groups[0].error_message)
