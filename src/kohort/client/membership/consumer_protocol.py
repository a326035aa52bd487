"""Subscriptions and assignments as members of classic groups send them to each other: a version, then the message."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from kohort.client.assignors import Member
from kohort.client.types import TopicPartition, by_topic
from kohort.protocol.errors import ProtocolError
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_NEWEST: Final = 3


def encode_subscription(
    topics: Collection[str],
    user_data: bytes | None,
    owned: Iterable[TopicPartition],
    generation: int,
    rack: str | None,
) -> bytes:
    """Returns a subscription in the newest version; members with older ones read its beginning."""
    subscription = ConsumerProtocolSubscription(
        topics=tuple(sorted(topics)),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.OwnedPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(owned).items()
        ],
        generation_id=generation,
        rack_id=rack,
    )
    return _NEWEST.to_bytes(2, "big") + subscription.encode(_NEWEST)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Member:
    """Returns a member's subscription; an empty one if it can't be read, so that the others can go on."""
    try:
        subscription, _ = ConsumerProtocolSubscription.read(data, 2, _version(data))
    except ProtocolError:
        return Member(frozenset(), instance_id)
    return Member(
        frozenset(subscription.topics),
        instance_id,
        frozenset(
            TopicPartition(topic.topic, number)
            for topic in subscription.owned_partitions
            for number in topic.partitions
        ),
        subscription.generation_id,
        subscription.user_data,
        subscription.rack_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )
    return _NEWEST.to_bytes(2, "big") + assignment.encode(_NEWEST)


def decode_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Returns the partitions of an assignment; no bytes mean none.

    Raises:
        ProtocolError: the bytes aren't an assignment.
    """
    if not data:
        return frozenset()
    assignment, _ = ConsumerProtocolAssignment.read(data, 2, _version(data))
    return frozenset(
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    )


def _version(data: bytes) -> int:
    # Newer versions only add at the end.
    return max(0, min(int.from_bytes(data[:2], "big"), _NEWEST))
