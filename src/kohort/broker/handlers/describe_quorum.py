"""DescribeQuorum: the quorum of the metadata log, which is this node alone (KIP-595)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored.cluster_metadata import METADATA_TOPIC

SERVED: Final = Served(DescribeQuorumRequest, versions=(0, 2), max_items=ONE_STEP)

Topic = DescribeQuorumResponse.Topic
Partition = Topic.Partition

IDENTIFIED: Final = 2
"""First version with the voters' directories and addresses (KIP-853)."""

LEADER_EPOCH: Final = 0
"""Nobody else ever led."""


def handle(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """Describes the one voter, which has all records; it has no listener of a controller."""
    if not context.cluster_allowed(Operation.DESCRIBE):
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in asked])
    logs, node = context.broker.log_manager, context.broker.node_id
    end = logs.metadata.log_end_offset
    voter = ReplicaState(
        replica_id=node,
        replica_directory_id=logs.directory_id if context.version >= IDENTIFIED else NO_UUID,
        log_end_offset=end,
        last_fetch_timestamp=context.now,
        last_caught_up_timestamp=context.now,
    )
    partition = Partition(leader_id=node, leader_epoch=LEADER_EPOCH, high_watermark=end, current_voters=[voter])
    return DescribeQuorumResponse(
        topics=[Topic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[DescribeQuorumResponse.Node(node_id=node)] if context.version >= IDENTIFIED else [],
    )


def _unknown(name: str, indexes: list[int]) -> Topic:
    """A topic that the quorum doesn't keep, or not alone: all of a request fails, as in Kafka."""
    return Topic(
        topic_name=name,
        partitions=[
            Partition(
                partition_index=index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=f"A quorum is described for partition 0 of {METADATA_TOPIC} alone.",
            )
            for index in indexes
        ],
    )
