"""TxnOffsetCommit: commits offsets in a producer's transaction."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.offset_requests import sort_partitions
from kohort.broker.reply import Reply, map_reply, when_replied
from kohort.coordinator.offsets import txn_commit_refused
from kohort.coordinator.transactions import ProducerIdAndEpoch, verification_error
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

SERVED: Final = Served(TxnOffsetCommitRequest, versions=(0, 6), max_items=ONE_STEP)

_Topic = TxnOffsetCommitResponse.Topic

LOAD_IN_PROGRESS: Final = 2
"""First version whose clients handle COORDINATOR_LOAD_IN_PROGRESS."""
ABORTABLE: Final = 4
"""First version with TRANSACTION_ABORTABLE."""
IMPLICIT_ADD: Final = 5
"""First version in which the commit adds the offsets to the transaction (KIP-890)."""
BY_ID: Final = 6
"""First version that identifies topics by id (KIP-1319)."""


def handle(
    request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse | Reply[TxnOffsetCommitResponse]:
    """Verifies the producer with the transaction coordinator, then commits with the group coordinator."""
    done = _commit(request, context)
    return done if context.version >= LOAD_IN_PROGRESS else map_reply(done, _without_loading)


def _commit(
    request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse | Reply[TxnOffsetCommitResponse]:
    if not context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return txn_commit_refused(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return txn_commit_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        entry = context.broker.groups.entry(request.group_id)
    except KafkaError as error:
        return txn_commit_refused(request, error.code)
    accepted, refused = _sort(request, context)
    reply: Reply[TxnOffsetCommitResponse] = Reply()

    def answer(response: TxnOffsetCommitResponse) -> None:
        response.topics.extend(refused)
        reply(response)

    def verified(code: ErrorCode) -> None:
        if code:
            abortable = context.version >= ABORTABLE
            answer(txn_commit_refused(accepted, verification_error(code, abortable=abortable)))
            return
        done = context.broker.groups.submit(
            request.group_id,
            lambda shard, now, then: shard.offsets.txn_commit(accepted, context.client, now, then),
            lambda refusal: txn_commit_refused(accepted, refusal),
        )
        when_replied(done, answer)

    if not accepted.topics:
        return TxnOffsetCommitResponse(topics=refused)
    context.broker.transactions.verify(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        entry.partition,
        add=context.version >= IMPLICIT_ADD,
        then=verified,
    )
    return reply


def _without_loading(response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    """The response for clients that fail on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                partition.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return response


def _sort(request: TxnOffsetCommitRequest, context: Context) -> tuple[TxnOffsetCommitRequest, list[_Topic]]:
    """Returns the request with the partitions that exist and may be read, and the errors of the others."""
    accepted: list[TxnOffsetCommitRequest.Topic] = []
    refused: list[_Topic] = []
    for topic in request.topics:
        name, topic_id, unknown_topic = topic.name, topic.topic_id, False
        if context.version >= BY_ID:
            found = context.broker.topics.by_id(topic_id)
            unknown_topic = found is None
            name = "" if found is None else found.name
        known, unknown, error = sort_partitions(context, name, topic.partitions)
        if unknown_topic:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        if known:
            accepted.append(TxnOffsetCommitRequest.Topic(name=name, topic_id=topic_id, partitions=known))
        if unknown:
            errors = [_Topic.Partition(partition_index=one.partition_index, error_code=error) for one in unknown]
            refused.append(_Topic(name=name, topic_id=topic_id, partitions=errors))
    return (
        TxnOffsetCommitRequest(
            transactional_id=request.transactional_id,
            group_id=request.group_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            generation_id_or_member_epoch=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            topics=accepted,
        ),
        refused,
    )
