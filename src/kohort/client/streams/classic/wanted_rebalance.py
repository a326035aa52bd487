"""Why a member of a classic streams group wants a rebalance, though the group has none."""

from __future__ import annotations

from typing import Final

from kohort.client.streams.classic.assignment import Assignment
from kohort.streams.statuses import TOPICS_LACK

_LOOK_AGAIN_MS: Final = 10_000
"""How long a static member that lacks topics waits before it joins again."""


class WantedRebalance:
    """The rebalance that a member wants: at once, when it has closed what others wait for, or at some time.

    Attributes:
        reason: why it wants one at once; None if it doesn't.
        awaited: others wait for tasks that it closes.
        probing_at: when it is to look whether warm-ups or topics are ready (ms); None if it needn't.
        number: how often it has wanted one and joined for it.
    """

    def __init__(self) -> None:
        self.number = 0
        self.forget()

    def forget(self) -> None:
        """Wants none any more: the member joins, or begins again."""
        self.reason: str | None = None
        self.awaited = False
        self.probing_at: int | None = None

    def count(self) -> None:
        """The member joins because it wants a rebalance.

        Brokers have the group rebalance only if it sends something else than before. Sent again, it is the same one.
        """
        self.number += 1

    def assigned(self, assignment: Assignment, now: int, *, static: bool) -> None:
        """Takes what an assignment says of the next rebalance.

        Args:
            static: it is a static member's. Before JoinGroup v9, a static leader that is back isn't told that it leads,
                so nobody looks at topics.
        """
        self.awaited = assignment.join_again
        after = [] if assignment.probing_ms is None else [assignment.probing_ms]
        if static and any(each.code in TOPICS_LACK for each in assignment.statuses):
            after.append(_LOOK_AGAIN_MS)
        self.probing_at = now + min(after) if after else None

    def due(self, *, reconciled: bool) -> bool:
        """Whether it is to join now, whatever the time.

        Args:
            reconciled: the member has closed all that it was to close.
        """
        return self.reason is not None or (self.awaited and reconciled)

    def probes(self, now: int) -> bool:
        """Whether it is time to look whether warm-ups or topics are ready."""
        return self.probing_at is not None and now >= self.probing_at
