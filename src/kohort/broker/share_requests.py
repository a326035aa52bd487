"""What ShareFetch and ShareAcknowledge have in common: who may ask, and which partitions there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.share.sessions import PartitionKey
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.share_in_flight import IN_FLIGHT_TAG, InFlight, encode_in_flight

MAX_MEMBER_ID: Final = 36
"""The length of an id as clients make it."""

ELSEWHERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""Errors with which a response says who leads the partition."""


def check(request: ShareFetchRequest | ShareAcknowledgeRequest, context: Context) -> tuple[str, str]:
    """Returns the ids of group and member, if these may ask.

    Raises:
        KafkaError: UNSUPPORTED_VERSION if there are no share groups, INVALID_REQUEST, or GROUP_AUTHORIZATION_FAILED.
    """
    if not context.broker.groups.offered("share"):
        context.broker.shares.stop()  # what is left of when there were some
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    group_id, member_id = request.group_id, request.member_id
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a group id is needed")
    if not context.allowed(Operation.READ, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not member_id or len(member_id) > MAX_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member id of 1 to {MAX_MEMBER_ID} characters is needed")
    return group_id, member_id


def partition_errors(context: Context) -> Callable[[PartitionKey], ErrorCode]:
    """Returns a function that says why a member can't have a partition; it asks once for each topic."""
    topics = context.broker.topics
    of_topic: dict[UUID, ErrorCode] = {}

    def error_of(key: PartitionKey) -> ErrorCode:
        topic = topics.by_id(key[0])
        error = of_topic.get(key[0])
        if error is None:
            if topic is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif not context.allowed(Operation.READ, ResourceType.TOPIC, topic.name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else:
                error = ErrorCode.NONE
            of_topic[key[0]] = error
        if not error and topic is not None and topic.partition(key[1]) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error

    return error_of


def batches_of(topics: Iterable[Any]) -> Iterator[tuple[PartitionKey, Any]]:
    """Yields the partitions of a request with their acknowledgements."""
    for topic in topics:
        for partition in topic.partitions:
            yield (topic.topic_id, partition.partition_index), partition.acknowledgement_batches


def leader_epoch(context: Context, key: PartitionKey) -> int:
    """The leader epoch of a partition; -1 if it isn't there any more."""
    topic = context.broker.topics.by_id(key[0])
    partition = None if topic is None else topic.partition(key[1])
    return -1 if partition is None else partition.leader_epoch


def in_flight_tags(context: Context, group_id: str, key: PartitionKey) -> dict[int, bytes] | None:
    """The tagged field with what is in flight of a share partition (`kohort.protocol.share_in_flight`)."""
    hosted = context.broker.shares.get(group_id, key)
    if hosted is None or hosted.machine is None:
        return None
    records = [
        InFlight(
            run.first_offset,
            run.last_offset,
            run.state.name.lower(),
            run.delivery_count,
            run.member_id,
            None if run.locked_until is None else int(run.locked_until),
        )
        for run in hosted.machine.describe()
    ]
    return {IN_FLIGHT_TAG: encode_in_flight(records)} if records else None


def lock_timeout_ms(context: Context, group_id: str) -> int:
    """How long the group's members have records locked (share.record.lock.duration.ms)."""
    return context.broker.shares.configs.of(group_id).partition.record_lock_duration_ms
