"""InitProducerId: producer ids and epochs for idempotent and transactional producers."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.coordinator.transactions import fencing_error, init_idempotent_producer
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

SERVED: Final = Served(InitProducerIdRequest, versions=(0, 6))

FENCED: Final = 4
"""First version with PRODUCER_FENCED."""


def handle(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse | Reply[InitProducerIdResponse]:
    """Assigns an id to an idempotent producer; the transaction coordinator handles transactional ones."""
    broker = context.broker
    transactional_id = request.transactional_id
    if transactional_id is None:
        if not context.may_write_somewhere() and not context.cluster_allowed(Operation.IDEMPOTENT_WRITE):
            return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if (request.producer_id < 0) is not (request.producer_epoch < 0):
            return _refused(ErrorCode.INVALID_REQUEST)
        return init_idempotent_producer(broker.topics.next_producer_id)
    if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return broker.transactions.submit(
        transactional_id,
        lambda shard, now, reply: shard.init_producer_id(request, context.client, now, reply),
        lambda code: _refused(fencing_error(code, context.version, FENCED)),
    )


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
