"""AddPartitionsToTxn: partitions take part in a transaction, or are verified to do so (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kohort.broker.context import Context
from kohort.broker.reply import Reply, hear
from kohort.broker.security import CLUSTER_NAME, Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kohort.protocol.stored import INTERNAL_TOPICS

_Asked = AddPartitionsToTxnRequest.Transaction
_Results = AddPartitionsToTxnResponse.ResultsByTransaction

SEVERAL: Final = 4
"""First version with several transactions; brokers send it, clients the versions before."""


def handle(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse | Reply[AddPartitionsToTxnResponse]:
    """Answer when every transaction's coordinator has."""
    if context.version < SEVERAL:
        asked = [
            _Asked(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    elif not context.allowed(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        asked = request.transactions
    reply: Reply[AddPartitionsToTxnResponse] = Reply()
    results: list[_Results | None] = [None] * len(asked)
    left = len(asked)

    def receive(place: int, result: _Results) -> None:
        nonlocal left
        results[place] = result
        left -= 1
        if not left:
            reply(_response([found for found in results if found is not None], context))

    for place, transaction in enumerate(asked):
        _ask(transaction, context, partial(receive, place))
    if not asked:
        return _response([], context)
    return reply


def _response(results: list[_Results], context: Context) -> AddPartitionsToTxnResponse:
    if context.version < SEVERAL:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _ask(asked: _Asked, context: Context, then: Callable[[_Results], None]) -> None:
    errors = {
        (topic.name, index): _error(topic.name, index, asked, context)
        for topic in asked.topics
        for index in topic.partitions
    }
    if any(errors.values()):
        # All or none: those that could have been added say so.
        then(_refused(asked, lambda place: errors[place] or ErrorCode.OPERATION_NOT_ATTEMPTED))
        return
    if not errors:
        then(_refused(asked, lambda place: ErrorCode.NONE))
        return
    done = context.broker.transactions.submit(
        asked.transactional_id,
        lambda shard, now, reply: shard.add_partitions(asked, context.client, now, reply),
        lambda code: _refused(asked, lambda place: code),
    )
    hear(done, then)


def _error(topic: str, index: int, asked: _Asked, context: Context) -> ErrorCode:
    if context.version < SEVERAL:  # brokers may do it all
        if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if topic in INTERNAL_TOPICS or not context.allowed(Operation.WRITE, ResourceType.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.broker.topics.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _refused(asked: _Asked, code: Callable[[tuple[str, int]], ErrorCode]) -> _Results:
    return _Results(
        transactional_id=asked.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code((topic.name, index))
                    )
                    for index in topic.partitions
                ],
            )
            for topic in asked.topics
        ],
    )
