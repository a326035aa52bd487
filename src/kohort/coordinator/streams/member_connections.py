"""The connections that members send their heartbeats over: a member whose connection is broken is dead in a while.

A process that is killed closes its connections at once, long before its session timeout. One that is paused, or that
can't be reached any more, doesn't.

The connection that counts is the one of the member's latest heartbeat; but while a heartbeat is held, it is that one's.
A member that is heard over another connection within the timeout has lost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from kohort.coordinator.timing_wheel import Timer, TimingWheel

_LATE_MS: Final = 100
"""A timer that runs so much later than it should was held up, and so were heartbeats: there is another timeout."""


class _Link(Timer):
    """A member's connection; as a timer it waits, once the connection is broken, until the member counts as dead."""

    __slots__ = ("_links", "connection", "group_id", "held", "member_id", "timeout_ms")

    def __init__(self, links: MemberConnections, group_id: str, member_id: str, connection: Hashable) -> None:
        super().__init__(0)
        self._links = links
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.timeout_ms = 0
        self.held = False

    def run(self) -> None:
        self._links._expired(self)


class MemberConnections:
    """The connections of those members that have a disconnect timeout.

    Args:
        dead: called with group id, member id and timeout in ms when a member's connection was broken for so long.
    """

    def __init__(self, wheel: TimingWheel, dead: Callable[[str, str, int], object]) -> None:
        self._wheel = wheel
        self._dead = dead
        self._links: dict[tuple[str, str], _Link] = {}
        self._members: dict[Hashable, dict[_Link, None]] = {}  # by connection

    def __len__(self) -> int:
        return len(self._links)

    def heard(
        self, group_id: str, member_id: str, connection: Hashable, timeout_ms: int, *, held: bool = False
    ) -> None:
        """A member was heard over a connection.

        Args:
            held: whether its heartbeat is held: until `released`, no other connection of the member counts.
        """
        link = self._links.get((group_id, member_id))
        if link is None:
            link = self._links[group_id, member_id] = _Link(self, group_id, member_id, connection)
            self._members.setdefault(connection, {})[link] = None
        link.cancel()
        link.timeout_ms = timeout_ms
        if held or not link.held:
            self._move(link, connection)
            link.held = held

    def released(self, group_id: str, member_id: str) -> None:
        """No heartbeat of the member is held any more; its connection counts until the member is heard over another."""
        if link := self._links.get((group_id, member_id)):
            link.held = False

    def disconnected(self, connection: Hashable, now: int) -> None:
        """A connection is broken: its members have to come back within their timeouts."""
        for link in self._members.get(connection, ()):
            if not link.waiting:
                link.held = False
                link.deadline = now + link.timeout_ms
                self._wheel.schedule(link)

    def forget(self, group_id: str, member_id: str) -> None:
        """The member has left or is fenced, or has a disconnect timeout no more."""
        if link := self._links.pop((group_id, member_id), None):
            link.cancel()
            self._leave(link)

    def clear(self) -> None:
        """Forgets all: the server itself closes its connections."""
        for group_id, member_id in list(self._links):
            self.forget(group_id, member_id)

    def _expired(self, link: _Link) -> None:
        now = self._wheel.now
        if now - link.deadline > _LATE_MS:
            link.deadline = now + link.timeout_ms
            self._wheel.schedule(link)
            return
        self.forget(link.group_id, link.member_id)
        self._dead(link.group_id, link.member_id, link.timeout_ms)

    def _move(self, link: _Link, connection: Hashable) -> None:
        if link.connection != connection:
            self._leave(link)
            link.connection = connection
            self._members.setdefault(connection, {})[link] = None

    def _leave(self, link: _Link) -> None:
        members = self._members[link.connection]
        del members[link]
        if not members:
            del self._members[link.connection]
