"""AlterPartitionReassignments: a partition can only be assigned to the one node, where it is."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.replica_assignment import check_replicas
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

SERVED: Final = Served(AlterPartitionReassignmentsRequest, versions=(0, 1))

Move = AlterPartitionReassignmentsRequest.Topic.Partition
Topic = AlterPartitionReassignmentsResponse.TopicResponse


def handle(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> Slices[AlterPartitionReassignmentsResponse]:
    """Accepts reassignments to the one node and refuses others; there never is one to cancel."""
    requested = request.allow_replication_factor_change
    if not context.cluster_allowed(Operation.ALTER):
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            error_message="Cluster authorization failed.",
            allow_replication_factor_change=requested,
        )
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=requested, responses=[]
    )
    for topic in request.topics:
        yield
        outcome = Topic(name=topic.name, partitions=[])
        response.responses.append(outcome)
        for move in topic.partitions:
            outcome.partitions.append(_outcome(topic.name, move, context))
            yield
    return response


def _outcome(topic: str, move: Move, context: Context) -> Topic.Partition:
    try:
        _check(topic, move, context)
    except KafkaError as error:
        return Topic.Partition(partition_index=move.partition_index, error_code=error.code, error_message=error.detail)
    return Topic.Partition(partition_index=move.partition_index, error_message=None)


def _check(name: str, move: Move, context: Context) -> None:
    topic = context.broker.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if topic.partition(move.partition_index) is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{move.partition_index}."
        )
    if move.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    check_replicas(move.replicas, context.broker.node_id)
