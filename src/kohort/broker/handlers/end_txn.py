"""EndTxn: commits or aborts a transaction."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply, map_reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

SERVED: Final = Served(EndTxnRequest, versions=(0, 5))

NEXT_EPOCH: Final = 5
"""First version that answers with the producer id and epoch of the next transaction (KIP-890)."""


def handle(request: EndTxnRequest, context: Context) -> EndTxnResponse | Reply[EndTxnResponse]:
    def by_version(response: EndTxnResponse) -> EndTxnResponse:
        if context.version < NEXT_EPOCH:
            response.producer_id = response.producer_epoch = -1
        return response

    if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    done = context.broker.transactions.submit(
        request.transactional_id,
        lambda shard, now, reply: shard.end_txn(request, context.client, now, reply),
        lambda code: EndTxnResponse(error_code=code),
    )
    return map_reply(done, by_version)
