"""ListTransactions: transactional ids, by state, producer, duration and name (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.coordinator.transactions import list_transactions
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

SERVED: Final = Served(ListTransactionsRequest, versions=(0, 2), max_items=ONE_STEP)


def handle(request: ListTransactionsRequest, context: Context) -> Slices[ListTransactionsResponse]:
    """Lists the transactions of all shards; refused while one is loading, as its transactions would be missing."""
    runtime = context.broker.transactions
    if runtime.loading():
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    visible = []
    for shard in runtime.active():
        for transaction in list(shard.transactions()):
            if context.allowed(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id):
                visible.append(transaction)
            yield
    return list_transactions(visible, request, context.now)
