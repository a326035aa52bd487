"""Heartbeats that are held: a member asks for news on a connection of its own, and is answered when there is some.

Such a heartbeat changes nothing but the time that the member was heard. The answer only says whether there is news,
which the member's next heartbeat brings. So nothing is lost with an answer, and it doesn't matter in which order the
heartbeats of several connections come. A member has one that is held; the next takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, NamedTuple

from kohort.coordinator.purgatory import DelayedOperation, Purgatory
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.news import Known, can_move_on, has_news
from kohort.coordinator.timing_wheel import Timer, TimingWheel

_MEMBERS_PER_MS: Final = 4
"""After a change all members of a group are looked at; in a large group that waits for more changes, a ms for so many
members."""


class Held(NamedTuple):
    """A heartbeat that is to be held.

    Attributes:
        connection: of its own, over which it came.
        arrived: in ms since 1970.
        deadline: until when it is held, in ms since 1970.
    """

    group_id: str
    known: Known
    connection: Hashable
    arrived: int
    deadline: int


class _HeldHeartbeat(DelayedOperation):
    """A heartbeat that waits until there is news."""

    __slots__ = ("_all", "answer", "heartbeat")

    def __init__(self, held: HeldHeartbeats, heartbeat: Held, answer: Callable[[bool], object]) -> None:
        super().__init__(heartbeat.deadline)
        self._all = held
        self.heartbeat = heartbeat
        self.answer: Callable[[bool], object] | None = answer

    def try_complete(self) -> bool:
        draft = self._all.draft(self.heartbeat.group_id, self.heartbeat.arrived)
        return (draft is None or has_news(draft, self.heartbeat.known)) and self.complete(news=True)

    def complete(self, *, news: bool) -> bool:
        """Answers the heartbeat; True for the first call only."""
        answer, self.answer = self.answer, None
        completed = self.force_complete()
        if answer is not None:
            answer(news)
        return completed

    def on_complete(self) -> None:
        self._all._completed(self)

    def on_expiration(self) -> None:
        self.complete(news=False)


class HeldHeartbeats:
    """The held heartbeats of a shard's groups.

    Args:
        draft: returns a draft without changes of a group, by its id, made at a time in ms since 1970 or later; None if
            there is no such group.
    """

    def __init__(self, wheel: TimingWheel, draft: Callable[[str, int], Draft | None]) -> None:
        self.draft = draft
        self._wheel = wheel
        self._purgatory = Purgatory("held heartbeat", wheel)
        self._of_members: dict[tuple[str, str], _HeldHeartbeat] = {}
        self._of_connections: dict[Hashable, _HeldHeartbeat] = {}
        self._checks: dict[str, Timer] = {}

    def __len__(self) -> int:
        return len(self._of_members)

    def hold(self, heartbeat: Held, answer: Callable[[bool], object]) -> None:
        """Holds a heartbeat.

        Args:
            answer: called with whether there is news, now or later; not called if the connection breaks before.
        """
        self.release(heartbeat.group_id, heartbeat.known.member_id)
        operation = _HeldHeartbeat(self, heartbeat, answer)
        draft = self.draft(heartbeat.group_id, heartbeat.arrived)
        if draft is not None and can_move_on(draft):
            operation.complete(news=True)
        elif not self._purgatory.try_complete_else_watch(operation, [heartbeat.group_id]):
            self._of_members[heartbeat.group_id, heartbeat.known.member_id] = operation
            self._of_connections[heartbeat.connection] = operation

    def release(self, group_id: str, member_id: str) -> None:
        """Answers a member's heartbeat, if one is held: there is no news."""
        if operation := self._of_members.get((group_id, member_id)):
            operation.complete(news=False)

    def disconnected(self, connection: Hashable) -> None:
        """A connection is broken: what is held on it needs no answer."""
        if operation := self._of_connections.get(connection):
            operation.answer = None
            operation.force_complete()

    def changed(self, group_id: str, members: int, now: int) -> None:
        """A group has changed: whether there is news for its members is looked at soon, once for several changes.

        Args:
            members: how many it has.
        """
        if self._of_members and group_id not in self._checks:
            at = now + members // _MEMBERS_PER_MS
            self._checks[group_id] = self._wheel.add(at, partial(self._check, group_id))

    def _check(self, group_id: str) -> None:
        del self._checks[group_id]
        self._purgatory.check_and_complete(group_id)
        draft = self.draft(group_id, 0)
        if draft is None or not can_move_on(draft):
            return
        for (group, _), operation in self._of_members.items():
            if group == group_id:
                operation.complete(news=True)  # one heartbeat, whoever's it is, is enough
                return

    def _completed(self, operation: _HeldHeartbeat) -> None:
        heartbeat = operation.heartbeat
        if self._of_connections.get(heartbeat.connection) is operation:
            del self._of_connections[heartbeat.connection]
            del self._of_members[heartbeat.group_id, heartbeat.known.member_id]
