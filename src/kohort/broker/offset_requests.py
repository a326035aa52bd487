"""Shared by the handlers of committed offsets: sorts a request's partitions, and merges responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

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
N = TypeVar("N")
Item = TypeVar("Item")

PORTION: Final = 1000
"""Partitions whose offsets a coordinator commits or fetches in one go; more would make others wait. Of more partitions
the offsets aren't those of one moment, nor committed all or none, as a batch of Kafka's log couldn't hold them."""


def sort_partitions(context: Context, topic: str, partitions: Iterable[P]) -> tuple[list[P], list[P], ErrorCode]:
    """Returns the partitions that exist and may be read, the others, and the error of the others."""
    allowed = context.allowed(Operation.READ, ResourceType.TOPIC, topic)
    known: list[P] = []
    unknown: list[P] = []
    for partition in partitions:
        there = allowed and context.broker.topics.partition(topic, partition.partition_index) is not None
        (known if there else unknown).append(partition)
    return known, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def portions(
    topics: Iterable[N], partitions: Callable[[N], Sequence[Item]], part: Callable[[N, Sequence[Item]], N]
) -> Iterator[list[N]]:
    """Yields a request's topics in portions of at most `PORTION` topics and partitions; one portion if there are none.

    Args:
        partitions: returns those of a topic.
        part: makes a topic with some of its partitions.
    """
    portion: list[N] = []
    room = PORTION
    for topic in topics:
        all_of_it = partitions(topic)
        for start in range(0, max(len(all_of_it), 1), PORTION):
            some = all_of_it[start : start + PORTION]
            if portion and len(some) >= room:
                yield portion
                portion, room = [], PORTION
            portion.append(part(topic, some))
            room -= len(some) + 1
    yield portion


class TopicMerger(Generic[T]):
    """Merges responses for some of a request's partitions: each topic is there once.

    Attributes:
        topics: the topics of all responses.
    """

    def __init__(self, topics: list[T]) -> None:
        self.topics = topics
        self._by_name = {topic.name: topic for topic in topics}

    def add(self, more: Iterable[T]) -> None:
        for topic in more:
            known = self._by_name.setdefault(topic.name, topic)
            if known is topic:
                self.topics.append(topic)
            else:
                known.partitions.extend(topic.partitions)
