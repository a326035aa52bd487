"""WriteTxnMarkers: ends transactions in partitions on another coordinator's, or an administrator's, word."""

from __future__ import annotations

from kohort.broker.admin.access import cluster_allowed
from kohort.broker.admin.partitions import hosted_partition
from kohort.broker.context import Context
from kohort.broker.security import Operation
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

Marker = WriteTxnMarkersRequest.Marker
Outcome = WriteTxnMarkersResponse.Marker


def handle(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    """Append the markers. Who may ALTER the cluster may do it too, to abort hanging transactions (KIP-664)."""
    allowed = cluster_allowed(context, Operation.ALTER) or cluster_allowed(context, Operation.CLUSTER_ACTION)
    return WriteTxnMarkersResponse(
        markers=[
            Outcome(
                producer_id=marker.producer_id,
                topics=[
                    Outcome.Topic(
                        name=topic.name,
                        partitions=[
                            Outcome.Topic.Partition(
                                partition_index=index,
                                error_code=_append(marker, topic.name, index, context)
                                if allowed
                                else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _append(marker: Marker, topic: str, index: int, context: Context) -> ErrorCode:
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return ErrorCode.INVALID_REQUEST  # no producer has them; a log must not hold a marker of nobody's
    try:
        context.broker.end_transaction(
            hosted_partition(context, topic, index),
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            now=context.now,
        )
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
