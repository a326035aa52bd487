"""AddOffsetsToTxn: adds a group's offsets to a transaction (clients before transactions v2)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.coordinator_runtime import partition_for
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

SERVED: Final = Served(AddOffsetsToTxnRequest, versions=(0, 4))


def handle(
    request: AddOffsetsToTxnRequest, context: Context
) -> AddOffsetsToTxnResponse | Reply[AddOffsetsToTxnResponse]:
    broker = context.broker
    if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        broker.groups.start()
    except KafkaError as error:
        return _refused(error.code)
    partition = partition_for(request.group_id, broker.groups.partitions)
    return broker.transactions.submit(
        request.transactional_id,
        lambda shard, now, reply: shard.add_offsets(request, partition, context.client, now, reply),
        _refused,
    )


def _refused(code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)
