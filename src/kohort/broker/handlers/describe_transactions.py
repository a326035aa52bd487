"""DescribeTransactions: transactional ids, their producers, and the partitions of open transactions (KIP-664)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

SERVED: Final = Served(DescribeTransactionsRequest, versions=(0, 0))

_State = DescribeTransactionsResponse.TransactionState


def handle(request: DescribeTransactionsRequest, context: Context) -> Slices[DescribeTransactionsResponse]:
    """Describes each id once: repeated ids could make the response many times as large as the request."""
    ids = dict.fromkeys(request.transactional_ids)
    states = yield from in_slices(lambda each: _describe(each, context), ids)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(transactional_id: str, context: Context) -> _State:
    if not context.allowed(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _State(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        state = context.broker.transactions.entry(transactional_id).shard.describe(transactional_id)
    except KafkaError as error:
        return _State(transactional_id=transactional_id, error_code=error.code)
    state.topics = [
        topic for topic in state.topics if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
    ]
    return state
