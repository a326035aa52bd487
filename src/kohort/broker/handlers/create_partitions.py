"""CreatePartitions: adds partitions to topics."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.replica_assignment import check_replicas
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

SERVED: Final = Served(CreatePartitionsRequest, versions=(0, 3))

QUOTA_EXCEEDED: Final = 3
"""First version in which a quota refuses topics rather than delay the next request."""

log = logging.getLogger("kohort.broker.admin")

Result = CreatePartitionsResponse.Result


def handle(request: CreatePartitionsRequest, context: Context) -> Slices[CreatePartitionsResponse]:
    """Adds partitions to each topic on its own."""
    times = Counter(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    results: list[Result] = []
    room = MAX_PARTITIONS_AT_ONCE
    for name, topic in topics.items():
        try:
            if times[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            room -= yield from _add_partitions(topic, room, request.validate_only, context)
        except KafkaError as error:
            results.append(Result(name=name, error_code=error.code, error_message=error.detail))
        else:
            results.append(Result(name=name))
        yield
    return CreatePartitionsResponse(results=results)


def _add_partitions(
    wanted: CreatePartitionsRequest.Topic, room: int, validate_only: bool, context: Context
) -> Slices[int]:
    """Adds partitions to a topic, or only validates the request; returns how many are added."""
    if not context.allowed(Operation.ALTER, ResourceType.TOPIC, wanted.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = context.broker.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    has = len(topic.partitions)
    if topic.internal:
        # A group belongs to hash(id) modulo the number of partitions, which therefore must not change.
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The partitions of '{topic.name}' are the broker's own.")
    if wanted.count == has:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {has} partition(s).")
    if wanted.count < has:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {has} partition(s); {wanted.count} would not be an increase.",
        )
    added = wanted.count - has
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{added} partition(s) are to be added, but {len(wanted.assignments)} assignment(s) were given.",
            )
        for assignment in wanted.assignments:
            check_replicas(assignment.broker_ids, context.broker.node_id)
    if added > room:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"One request may add {MAX_PARTITIONS_AT_ONCE} partitions at most."
        )
    context.mutate(added, strict_since=QUOTA_EXCEEDED)
    if not validate_only:
        yield from context.broker.topics.add_partitions_in_slices(topic.name, wanted.count)
        log.info("partitions added topic=%s from=%d to=%d", topic.name, has, wanted.count)
    return added
