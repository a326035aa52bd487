"""The connections that members send their heartbeats over: a member whose connection is broken is dead in a while.

A process that is killed closes its connections at once, long before its session timeout. One that is paused, or that
can't be reached any more, doesn't.

A member has one connection for its heartbeats, the one of the latest, and may have another for those that are held. It
is heard from as long as one of them is open. Once both are broken it has to be heard over another within its timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Final

from kohort.coordinator.timing_wheel import Timer, TimingWheel

_LATE_MS: Final = 5
"""A timer that runs so much later than it should was held up, and so were heartbeats, which may have arrived."""

_READING_MS: Final = 200
"""The time to read those heartbeats in."""


class _Link(Timer):
    """A member's open connections; as a timer it waits, once the last is broken, until the member counts as dead.

    Attributes:
        open: the connection of its latest heartbeat, under False, and of the latest that was to be held, under True.
        late: whether the timer ran late before.
    """

    __slots__ = ("_links", "group_id", "late", "member_id", "open", "timeout_ms")

    def __init__(self, links: MemberConnections, group_id: str, member_id: str) -> None:
        super().__init__(0)
        self._links = links
        self.group_id = group_id
        self.member_id = member_id
        self.open: dict[bool, Hashable] = {}
        self.timeout_ms = 0
        self.late = False

    def run(self) -> None:
        self._links._expired(self)


class MemberConnections:
    """The connections of those members that have a disconnect timeout.

    Args:
        dead: called with group id, member id and timeout in ms when a member's connections were broken for so long.
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
            held: whether its heartbeat is one that is to be held.
        """
        link = self._links.get((group_id, member_id))
        if link is None:
            link = self._links[group_id, member_id] = _Link(self, group_id, member_id)
        link.cancel()
        link.timeout_ms = timeout_ms
        before = link.open.get(held)
        if before != connection:
            link.open[held] = connection
            self._members.setdefault(connection, {})[link] = None
            if before is not None:
                self._leave(link, before)

    def came_back(self, group_id: str, member_id: str) -> None:
        """A member was heard; over which connection is told when its heartbeat is answered, which may take a while."""
        if link := self._links.get((group_id, member_id)):
            link.cancel()

    def disconnected(self, connection: Hashable, now: int) -> None:
        """A connection is broken: members that have no other have to come back within their timeouts."""
        for link in self._drop(connection):
            if not link.open:
                link.late = False
                link.deadline = now + link.timeout_ms
                self._wheel.schedule(link)

    def closed(self, connection: Hashable) -> None:
        """The server has closed a connection, of which nobody dies."""
        self._drop(connection)

    def forget(self, group_id: str, member_id: str) -> None:
        """The member has left or is fenced, or has a disconnect timeout no more."""
        if link := self._links.pop((group_id, member_id), None):
            link.cancel()
            connections, link.open = link.open.values(), {}
            for connection in set(connections):
                self._leave(link, connection)

    def clear(self) -> None:
        """Forgets all: the server itself closes its connections."""
        for group_id, member_id in list(self._links):
            self.forget(group_id, member_id)

    def _expired(self, link: _Link) -> None:
        now = self._wheel.now
        if now - link.deadline > _LATE_MS and not link.late:
            link.late = True
            link.deadline = now + _READING_MS
            self._wheel.schedule(link)
            return
        self.forget(link.group_id, link.member_id)
        self._dead(link.group_id, link.member_id, link.timeout_ms)

    def _drop(self, connection: Hashable) -> Collection[_Link]:
        """Forgets a connection, and returns the links that had it."""
        links = self._members.pop(connection, {})
        for link in links:
            link.open = {held: other for held, other in link.open.items() if other != connection}
        return links

    def _leave(self, link: _Link, connection: Hashable) -> None:
        """A link has a connection no more, unless it has it for the other purpose."""
        if connection not in link.open.values():
            members = self._members[connection]
            del members[link]
            if not members:
                del self._members[connection]
