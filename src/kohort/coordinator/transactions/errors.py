"""Errors of transactions in the versions of the APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kohort.protocol.topic_partition import TopicPartition

PartitionErrors: TypeAlias = Mapping[TopicPartition, ErrorCode]
"""An error, or NONE, for each partition."""


def fencing_error(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """PRODUCER_FENCED as INVALID_PRODUCER_EPOCH, in versions of the API before `since`."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def verification_error(code: ErrorCode, *, abortable: bool) -> ErrorCode:
    """The error of Produce or TxnOffsetCommit for a result of `TransactionShard.verify_or_add` (KIP-890).

    Args:
        code: the result.
        abortable: whether the client knows TRANSACTION_ABORTABLE: Produce from v11, TxnOffsetCommit from v4 on.
    """
    if code is ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


def add_partitions_results(
    request: AddPartitionsToTxnRequest.Transaction, errors: PartitionErrors
) -> AddPartitionsToTxnResponse.ResultsByTransaction:
    """The results of a transaction's partitions, in the order of the request."""
    topics = []
    for topic in request.topics:
        outcomes = [
            AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=errors[TopicPartition(topic.name, index)]
            )
            for index in topic.partitions
        ]
        topics.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=outcomes))
    return AddPartitionsToTxnResponse.ResultsByTransaction(
        transactional_id=request.transactional_id, topic_results=topics
    )
