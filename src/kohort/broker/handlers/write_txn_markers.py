"""WriteTxnMarkers: ends transactions in partitions, for another coordinator or an administrator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

SERVED: Final = Served(WriteTxnMarkersRequest, versions=(1, 2))

Marker = WriteTxnMarkersRequest.Marker
Outcome = WriteTxnMarkersResponse.Marker
Written = Outcome.Topic.Partition


def handle(
    request: WriteTxnMarkersRequest, context: Context
) -> Slices[WriteTxnMarkersResponse | Reply[WriteTxnMarkersResponse]]:
    """Appends the markers, and responds once they are safe.

    ALTER on the cluster is enough, so that administrators can abort hanging transactions (KIP-664).
    """
    may_alter = context.cluster_allowed(Operation.ALTER, audited=False)
    allowed = may_alter or context.cluster_allowed(Operation.CLUSTER_ACTION)
    response = WriteTxnMarkersResponse(markers=[])
    reply: Reply[WriteTxnMarkersResponse] = Reply()
    pending = 1

    def done() -> None:
        nonlocal pending
        pending -= 1
        if not pending:
            reply(response)

    def failed(written: Written, error: KafkaError) -> None:
        written.error_code = error.code
        done()

    for marker in request.markers:
        yield
        outcome = Outcome(producer_id=marker.producer_id, topics=[])
        response.markers.append(outcome)
        for topic in marker.topics:
            yield
            partitions = [Written(partition_index=index) for index in topic.partition_indexes]
            outcome.topics.append(Outcome.Topic(name=topic.name, partitions=partitions))
            for written in partitions:
                yield
                pending += 1
                refuse = partial(failed, written)
                if not allowed:
                    refuse(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
                    continue
                try:
                    _append(marker, topic.name, written.partition_index, context, done, refuse)
                except KafkaError as error:
                    refuse(error)
    done()
    return response if reply.done else reply


def _append(
    marker: Marker,
    topic: str,
    index: int,
    context: Context,
    safe: Callable[[], None],
    failed: Callable[[KafkaError], None],
) -> None:
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST)  # no producer has these; the log must not hold such a marker
    context.broker.transaction_markers.write(
        context.broker.topics.online_partition(topic, index),
        marker.producer_id,
        marker.producer_epoch,
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        now=context.now,
        safe=safe,
        failed=failed,
    )
