"""Partitions, by their topics and back."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.client.types import TopicPartition

__all__ = ["by_topic"]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions by topic, each in order."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
