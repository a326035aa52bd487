"""Values that all parts of the client share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from kohort.protocol.topic_partition import TopicPartition

__all__ = [
    "Broker", "GroupMetadata", "Headers", "OffsetAndMetadata", "OffsetAndTimestamp", "PartitionInfo", "Record",
    "RecordMetadata", "ShareRecord", "TopicInfo", "TopicPartition", "by_topic",
]  # fmt: skip

Headers = list[tuple[str, bytes | None]]
"""A record's headers: names (not unique) and values."""


class Broker(NamedTuple):
    """A broker in the metadata. Bootstrap servers, known by address only, have negative ids."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + (f" (id {self.node_id})" if self.node_id >= 0 else "")


class PartitionInfo(NamedTuple):
    """A partition's metadata; `leader` is None while it has none."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()


class TopicInfo(NamedTuple):
    """A topic's metadata: its partitions by number."""

    name: str
    topic_id: UUID
    internal: bool
    partitions: dict[int, PartitionInfo]


class OffsetAndMetadata(NamedTuple):
    """An offset to commit: of the next record to read; with the leader epoch of the last one read (-1: unknown)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """The result of a search by time: the record's offset and time (ms since 1970)."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class Record(NamedTuple):
    """A record as a consumer gives it.

    Attributes:
        topic, partition, offset: where it was read.
        timestamp: ms since 1970, -1 for none.
        key, value: bytes or None, or the deserializers' results.
        headers: names and values, in order.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers


class ShareRecord(NamedTuple):
    """A record as a share consumer gives it.

    Attributes:
        topic, partition, offset, timestamp, key, value, headers: as of `Record`.
        delivery_count: how often it was handed out to any member of the group, this time included.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers
    delivery_count: int


class RecordMetadata(NamedTuple):
    """Where a record was written. The offset is -1 with acks=0.

    `timestamp` is ms since 1970: the record's own, or the broker's where the topic is stamped by its clock.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class GroupMetadata(NamedTuple):
    """A member's id and generation, which a transaction needs to commit the group's offsets.

    `generation` is the generation of a classic group, or the member epoch of a consumer or streams group.
    """

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """Returns numbers of partitions by topic; both are sorted."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        topics[topic].append(number)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}
