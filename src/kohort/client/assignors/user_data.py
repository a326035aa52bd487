"""The sticky assignor's user data: a member's last assignment, as bytes in its subscription."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.client.types import TopicPartition, by_topic
from kohort.protocol.errors import ProtocolError
from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string

__all__ = ["StickyAssignorUserData", "decode_previous", "encode_previous"]


class StickyAssignorUserData(Data, versions="0-1"):
    """A member's last assignment. The version isn't on the wire: version 1 is the longer one.

    - v1: Generation
    """

    class TopicAssignment(Struct):
        """Partitions of one topic."""

        topic: str = string("Name of the topic.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions the member had.")

    previous_assignment: list[TopicAssignment] = array(TopicAssignment, "What the member had, by topic.")
    generation: int = int32("Generation that gave it; -1 = unknown.", since=1, default=-1, ignorable=True)


def encode_previous(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Returns the user data, in version 1."""
    return StickyAssignorUserData(
        previous_assignment=[
            StickyAssignorUserData.TopicAssignment(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ],
        generation=generation,
    ).encode(1)


def decode_previous(data: bytes | None) -> tuple[frozenset[TopicPartition], int]:
    """Returns a member's last assignment and its generation; nothing if it can't be read."""
    for version in (1, 0):
        if not data:
            break
        try:
            user_data, _ = StickyAssignorUserData.read(data, 0, version)
        except ProtocolError:
            continue
        partitions = frozenset(
            TopicPartition(topic.topic, number)
            for topic in user_data.previous_assignment
            for number in topic.partitions
        )
        return partitions, user_data.generation
    return frozenset(), -1
