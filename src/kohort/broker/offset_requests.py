"""Shared by the handlers of committed offsets: sorts a request's partitions, and merges responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.context import Context


class _Partition(Protocol):
    partition_index: int


class _Topic(Protocol):
    name: str
    partitions: list[Any]


P = TypeVar("P", bound=_Partition)
T = TypeVar("T", bound=_Topic)


def sort_partitions(context: Context, topic: str, partitions: Iterable[P]) -> tuple[list[P], list[P], ErrorCode]:
    """Returns the partitions that exist and may be read, the others, and the error of the others."""
    allowed = context.allowed(Operation.READ, ResourceType.TOPIC, topic)
    known: list[P] = []
    unknown: list[P] = []
    for partition in partitions:
        there = allowed and context.broker.topics.partition(topic, partition.partition_index) is not None
        (known if there else unknown).append(partition)
    return known, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def merge_topics(topics: list[T], more: Iterable[T]) -> None:
    """Merges responses for more partitions into `topics`, so that each topic is in it once."""
    by_name = {topic.name: topic for topic in topics}
    for topic in more:
        if topic.name in by_name:
            by_name[topic.name].partitions.extend(topic.partitions)
        else:
            topics.append(topic)
