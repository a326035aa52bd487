"""Cached results: almost every heartbeat says the same as the one before, of a group in which nothing has changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from kohort.coordinator.modern.timeouts import MemberTimer
from kohort.coordinator.step import Client


class CachedResult(NamedTuple):
    """The result of a member's latest heartbeat, which changed nothing.

    A heartbeat that says the same would change nothing either, and come to the same result.

    Attributes:
        timer: the member's timer, which such a heartbeat resets.
    """

    request: Any
    client: Client
    result: Any
    timer: MemberTimer

    def answers(self, request: Any, client: Client) -> bool:
        """Whether a heartbeat says the same."""
        return self.request == request and self.client == client
