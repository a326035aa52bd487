"""Statuses that a group sends to its members, such as missing topics or a stale topology (KIP-1071)."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class StatusCode(enum.IntEnum):
    """The statuses that Kafka has; `MISSING_CLIENT_TAGS` since version 1 of the heartbeat."""

    STALE_TOPOLOGY = 0
    """The group has a newer topology than the member: it gets no tasks until it comes back with that one."""
    MISSING_SOURCE_TOPICS = 1
    """Source topics don't exist: there are no tasks until they do."""
    INCORRECTLY_PARTITIONED_TOPICS = 2
    """Topics have other numbers of partitions than the topology needs: there are no tasks until that is mended."""
    MISSING_INTERNAL_TOPICS = 3
    """Internal topics are being created, or can't be: there are no tasks until they exist."""
    SHUTDOWN_APPLICATION = 4
    """A member asked that the whole application shut down."""
    ASSIGNMENT_DELAYED = 5
    """Tasks are still to be placed."""
    MISSING_CLIENT_TAGS = 6
    """The member lacks client tags that the group spreads standbys over."""


TOPICS_LACK: Final = frozenset(
    {
        StatusCode.MISSING_SOURCE_TOPICS,
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        StatusCode.MISSING_INTERNAL_TOPICS,
    }
)
"""What ends when topics are created or changed."""


class Status(NamedTuple):
    """A status with the broker's text. A code that isn't known here is a number."""

    code: StatusCode | int
    detail: str
