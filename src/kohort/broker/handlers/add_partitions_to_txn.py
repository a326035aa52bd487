"""AddPartitionsToTxn: adds partitions to a transaction, or verifies that they were added (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, when_replied
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kohort.protocol.stored import INTERNAL_TOPICS

SERVED: Final = Served(AddPartitionsToTxnRequest, versions=(0, 5), max_items=ONE_STEP)

_Requested = AddPartitionsToTxnRequest.Transaction
_Results = AddPartitionsToTxnResponse.ResultsByTransaction

BATCHED: Final = 4
"""First version with several transactions; sent by brokers, the versions before by clients."""


def handle(
    request: AddPartitionsToTxnRequest, context: Context
) -> Slices[AddPartitionsToTxnResponse | Reply[AddPartitionsToTxnResponse]]:
    """Responds once all transactions are done."""
    if context.version < BATCHED:
        requested = [
            _Requested(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    elif not context.cluster_allowed(Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        requested = request.transactions
    reply: Reply[AddPartitionsToTxnResponse] = Reply()
    results: list[_Results | None] = [None] * len(requested)
    pending = len(requested)

    def receive(position: int, result: _Results) -> None:
        nonlocal pending
        results[position] = result
        pending -= 1
        if not pending:
            reply(_response([found for found in results if found is not None], context))

    for position, transaction in enumerate(requested):
        _ask(transaction, context, partial(receive, position))
        yield
    if not requested:
        return _response([], context)
    return reply


def _response(results: list[_Results], context: Context) -> AddPartitionsToTxnResponse:
    if context.version < BATCHED:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _ask(requested: _Requested, context: Context, then: Callable[[_Results], None]) -> None:
    errors = {
        (topic.name, index): _error(topic.name, index, requested, context)
        for topic in requested.topics
        for index in topic.partitions
    }
    if any(errors.values()):
        # All or none: partitions that could have been added get OPERATION_NOT_ATTEMPTED.
        then(_refused(requested, lambda place: errors[place] or ErrorCode.OPERATION_NOT_ATTEMPTED))
        return
    if not errors:
        then(_refused(requested, lambda place: ErrorCode.NONE))
        return
    done = context.broker.transactions.submit(
        requested.transactional_id,
        lambda shard, now, reply: shard.add_partitions(requested, context.client, now, reply),
        lambda code: _refused(requested, lambda place: code),
    )
    when_replied(done, then)


def _error(topic: str, index: int, requested: _Requested, context: Context) -> ErrorCode:
    if context.version < BATCHED:  # brokers were checked for CLUSTER_ACTION
        if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, requested.transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if topic in INTERNAL_TOPICS or not context.allowed(Operation.WRITE, ResourceType.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.broker.topics.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _refused(requested: _Requested, code: Callable[[tuple[str, int]], ErrorCode]) -> _Results:
    return _Results(
        transactional_id=requested.transactional_id,
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
            for topic in requested.topics
        ],
    )
