"""OffsetForLeaderEpoch: the end offsets of leader epochs."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

SERVED: Final = Served(OffsetForLeaderEpochRequest, versions=(2, 4))

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1

Answer = OffsetForLeaderEpochResponse.Topic
Requested = OffsetForLeaderEpochRequest.Topic


def handle(request: OffsetForLeaderEpochRequest, context: Context) -> Slices[OffsetForLeaderEpochResponse]:
    """Looks up each epoch. CLUSTER_ACTION allows all topics, as for followers (KIP-320)."""
    all_allowed = context.cluster_allowed(Operation.CLUSTER_ACTION, audited=False)
    topics = []
    for topic in request.topics:
        yield
        allowed = all_allowed or context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        answer = Answer(topic=topic.topic, partitions=[])
        topics.append(answer)
        for each in topic.partitions:
            answer.partitions.append(_answer(topic.topic, each, allowed, context))
            yield
    return OffsetForLeaderEpochResponse(topics=topics)


def _answer(topic: str, requested: Requested.Partition, allowed: bool, context: Context) -> Answer.Partition:
    try:
        if not allowed:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = context.broker.topics.online_partition(topic, requested.partition)
        if requested.current_leader_epoch != NO_EPOCH and requested.current_leader_epoch != partition.leader_epoch:
            behind = requested.current_leader_epoch < partition.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.UNKNOWN_LEADER_EPOCH)
    except KafkaError as error:
        return Answer.Partition(
            partition=requested.partition, error_code=error.code, leader_epoch=NO_EPOCH, end_offset=NO_OFFSET
        )
    if requested.leader_epoch == partition.leader_epoch:
        # An empty log has no epochs yet, but this is the leader's.
        epoch, end_offset = requested.leader_epoch, partition.log.log_end_offset
    else:
        epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return Answer.Partition(partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)
