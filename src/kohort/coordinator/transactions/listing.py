"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from kohort.coordinator.transactions.states import TransactionState
from kohort.coordinator.transactions.transaction import Transaction
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_transactions import DescribeTransactionsResponse
from kohort.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kohort.protocol.topic_partition import TopicPartition
from kohort.regex import full_matches

_LABELS = {state.label: state for state in TransactionState}


def list_transactions(
    transactions: Iterable[Transaction], request: ListTransactionsRequest, now: int
) -> ListTransactionsResponse:
    """The transactions that pass the request's filters, or INVALID_REGULAR_EXPRESSION."""
    found = [
        transaction
        for transaction in transactions
        if (not request.producer_id_filters or transaction.producer_id in request.producer_id_filters)
        and (not request.state_filters or transaction.state.label in request.state_filters)
        and (request.duration_filter < 0 or now - transaction.started_at > request.duration_filter)
    ]
    if request.transactional_id_pattern:
        try:
            matches = full_matches(
                request.transactional_id_pattern, [transaction.transactional_id for transaction in found]
            )
        except ValueError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        found = [transaction for transaction, matched in zip(found, matches, strict=True) if matched]
    return ListTransactionsResponse(
        unknown_state_filters=tuple(name for name in request.state_filters if name not in _LABELS),
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            for transaction in found
        ],
    )


def describe_transaction(
    transactional_id: str, transaction: Transaction | None, partitions: Iterable[TopicPartition]
) -> DescribeTransactionsResponse.TransactionState:
    """A transactional id for DescribeTransactions; `partitions` are those of the transaction that lack a marker."""
    if transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return DescribeTransactionsResponse.TransactionState(error_code=code, transactional_id=transactional_id)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_at,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TransactionState.Topic(
                topic=topic, partitions=tuple(partition.partition for partition in group)
            )
            for topic, group in groupby(sorted(partitions), lambda partition: partition.topic)
        ],
    )
