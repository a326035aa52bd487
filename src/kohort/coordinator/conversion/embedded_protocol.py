"""What classic consumers tell each other within JoinGroup and SyncGroup: subscriptions and assignments, as bytes.

Each begins with its version; newer ones only add at the end. Consumers name topics, the broker assigns by topic id: a
topic that isn't there, or isn't any more, is left out on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kohort.coordinator.modern.cluster import Cluster
from kohort.protocol.errors import ProtocolError
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kohort.protocol.topic_partition import TopicIdPartition

_NEWEST: Final = 3
_INT16: Final = 2


class Subscription(NamedTuple):
    """What a classic consumer wants, and has.

    Attributes:
        owned: what it says that it has; nothing in version 0.
    """

    topics: frozenset[str]
    owned: frozenset[TopicIdPartition]
    rack: str | None


def decode_subscription(data: bytes, cluster: Cluster) -> Subscription:
    """Reads a subscription.

    Raises:
        ProtocolError: the bytes aren't one.
    """
    read, _ = ConsumerProtocolSubscription.read(data, _INT16, _version(data))
    owned = _ids(((each.topic, each.partitions) for each in read.owned_partitions), cluster)
    return Subscription(frozenset(read.topics), owned, read.rack_id or None)


def decode_assignment(data: bytes, cluster: Cluster) -> tuple[frozenset[TopicIdPartition], bool]:
    """Reads an assignment, and whether it has user data, which only the assignor that made it understands.

    No bytes, as a member has that never synced, are an empty assignment.

    Raises:
        ProtocolError: the bytes aren't one.
    """
    if not data:
        return frozenset(), False
    read, _ = ConsumerProtocolAssignment.read(data, _INT16, _version(data))
    partitions = _ids(((each.topic, each.partitions) for each in read.assigned_partitions), cluster)
    return partitions, bool(read.user_data)


def encode_assignment(partitions: Iterable[TopicIdPartition], subscription: bytes, cluster: Cluster) -> bytes:
    """An assignment in the version of a member's subscription.

    Version 0 if it has none: of the protocols that a member supports nobody may have read this one's subscription yet.
    """
    try:
        version = _version(subscription)
    except ProtocolError:
        version = 0
    numbers: dict[str, list[int]] = {}
    for topic_id, partition in partitions:
        if (name := cluster.name_of(topic_id)) is not None:
            numbers.setdefault(name, []).append(partition)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartition(topic=name, partitions=tuple(sorted(numbers[name])))
            for name in sorted(numbers)
        ],
        user_data=None,
    )
    return version.to_bytes(_INT16, "big") + assignment.encode(version)


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:_INT16], "big", signed=True)
    if len(data) < _INT16 or version < 0:
        raise ProtocolError(
            "ConsumerProtocol", version, "Version", 0, f"no version that there is, in {len(data)} bytes"
        )
    return min(version, _NEWEST)


def _ids(topics: Iterable[tuple[str, Iterable[int]]], cluster: Cluster) -> frozenset[TopicIdPartition]:
    found: set[TopicIdPartition] = set()
    for name, partitions in topics:
        topic_id, count = cluster.topic_id(name), cluster.partitions(name)
        if topic_id is not None and count is not None:
            found.update(TopicIdPartition(topic_id, number) for number in partitions if 0 <= number < count)
    return frozenset(found)
