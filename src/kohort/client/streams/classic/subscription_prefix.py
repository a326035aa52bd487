"""What a subscription of any version begins with, so that a leader can read it of members that it can't read else."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kohort.client.streams.classic.versions import FIRST

_LAYOUT: Final = struct.Struct(">hhh?")
"""Version, then the first fields of `StreamsSubscription`."""


class SubscriptionPrefix(NamedTuple):
    """The prefix.

    Attributes:
        version: the version that the subscription was written in.
        latest_supported: the newest version that its writer knows.
        leader_version: the newest version that the leader knew whom its writer heard last; 0 if it heard none.
        has_tasks: its writer has tasks, or hasn't closed all that it had.
    """

    version: int
    latest_supported: int
    leader_version: int
    has_tasks: bool

    def stays_too_new(self, latest: int) -> bool:
        """Whether it is newer than its leader knows, though its writer has heard of one that knows no more.

        Args:
            latest: the newest version that the leader knows.
        """
        return self.version > latest >= self.leader_version > 0


def read_prefix(data: bytes) -> SubscriptionPrefix:
    """Reads the prefix of a subscription.

    Raises:
        ValueError: it is no subscription of any version; says why.
    """
    if len(data) < _LAYOUT.size:
        raise ValueError(f"{len(data)} bytes are no subscription")
    version, latest_supported, leader_version, has_tasks = _LAYOUT.unpack_from(data)
    if version < FIRST:
        raise ValueError(f"{len(data)} bytes of version {version} are no subscription")
    return SubscriptionPrefix(version, max(version, latest_supported), leader_version, has_tasks)
