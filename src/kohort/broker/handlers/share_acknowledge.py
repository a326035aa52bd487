"""ShareAcknowledge: takes what became of records that a member of a share group was given."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply
from kohort.broker.share.acknowledging import Outcomes, acknowledge
from kohort.broker.share.sessions import FINAL, INITIAL
from kohort.broker.share_requests import ELSEWHERE, batches_of, check, leader_epoch, lock_timeout_ms, partition_errors
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

SERVED: Final = Served(ShareAcknowledgeRequest, versions=(1, 2), max_items=ONE_STEP)

_Topic = ShareAcknowledgeResponse.TopicResponse
_Node = ShareAcknowledgeResponse.NodeEndpoint


def handle(
    request: ShareAcknowledgeRequest, context: Context
) -> ShareAcknowledgeResponse | Reply[ShareAcknowledgeResponse]:
    """Answers when all is persisted; a request with the final epoch ends the session, too."""
    shares = context.broker.shares
    try:
        group_id, member_id = check(request, context)
        if request.share_session_epoch == INITIAL:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        if request.share_session_epoch == FINAL:
            session = shares.sessions.get(group_id, member_id)
        else:
            session = shares.sessions.advance(group_id, member_id, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)

    def answer(outcomes: Outcomes) -> ShareAcknowledgeResponse:
        if request.share_session_epoch == FINAL:
            shares.close(session)
        return _response(outcomes, context, lock_timeout_ms(context, group_id))

    acknowledged = acknowledge(
        shares,
        group_id,
        member_id,
        batches_of(request.topics),
        error_of=partition_errors(context),
        version=context.version,
        is_renew_ack=request.is_renew_ack,
    )
    return map_reply(acknowledged, answer)


def _response(outcomes: Outcomes, context: Context, lock_timeout: int) -> ShareAcknowledgeResponse:
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_timeout)
    topics: dict[UUID, _Topic] = {}
    for key, code in outcomes.items():
        topic = topics.get(key[0])
        if topic is None:
            topic = topics[key[0]] = _Topic(topic_id=key[0])
            response.responses.append(topic)
        partition = _Topic.Partition(partition_index=key[1], error_code=code)
        if code in ELSEWHERE:
            partition.current_leader.leader_id = context.broker.node_id
            partition.current_leader.leader_epoch = leader_epoch(context, key)
            if not response.node_endpoints:
                host, port = context.session.advertised
                response.node_endpoints.append(
                    _Node(node_id=context.broker.node_id, host=host, port=port, rack=context.broker.rack)
                )
        topic.partitions.append(partition)
    return response
