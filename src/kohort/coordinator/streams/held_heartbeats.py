"""Heartbeats that are held: a member asks for news on a connection of its own, and is answered when there is some.

Such a heartbeat changes nothing but the time that the member was heard. The answer only says whether there is news,
which the member's next heartbeat brings. So nothing is lost with an answer, and it doesn't matter in which order the
heartbeats of several connections come. A member has one that is held; the next takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from kohort.coordinator.purgatory import DelayedOperation, Purgatory
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.news import Known, can_move_on, has_news
from kohort.coordinator.timing_wheel import Timer, TimingWheel

_MEMBERS_PER_MS: Final = 4
"""After a change all members of a group are looked at; in a large group that waits for more changes, a ms for so many
members."""

_PORTION: Final = 50
"""Members that are looked at at once, which takes some ms; other work gets its turn before the next."""


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


class _Check(Timer):
    """Looks for news for the members of a group, in portions.

    Attributes:
        left: members that it has still to look at; None before it has begun.
        again: whether the group has changed since it began.
    """

    __slots__ = ("_all", "again", "group_id", "left")

    def __init__(self, held: HeldHeartbeats, group_id: str, deadline: int) -> None:
        super().__init__(deadline)
        self._all = held
        self.group_id = group_id
        self.left: list[str] | None = None
        self.again = False

    def run(self) -> None:
        self._all._check(self)


class HeldHeartbeats:
    """The held heartbeats of a shard's groups.

    Args:
        draft: returns a draft without changes of a group, by its id, made at a time in ms since 1970 or later; None if
            there is no such group.

    Attributes:
        purgatory: where they wait, by group id and member id.
    """

    def __init__(self, wheel: TimingWheel, draft: Callable[[str, int], Draft | None]) -> None:
        self.draft = draft
        self._wheel = wheel
        self.purgatory = Purgatory("held heartbeat", wheel)
        self._of_groups: dict[str, dict[str, _HeldHeartbeat]] = {}  # by group id and member id
        self._of_connections: dict[Hashable, _HeldHeartbeat] = {}
        self._checks: dict[str, _Check] = {}

    def __len__(self) -> int:
        return self.purgatory.delayed

    def hold(self, heartbeat: Held, answer: Callable[[bool], object]) -> None:
        """Holds a heartbeat.

        Args:
            answer: called with whether there is news, now or later; not called if the connection breaks before.
        """
        group_id, member_id = heartbeat.group_id, heartbeat.known.member_id
        self.release(group_id, member_id)
        operation = _HeldHeartbeat(self, heartbeat, answer)
        draft = self.draft(group_id, heartbeat.arrived)
        if draft is not None and can_move_on(draft):
            operation.complete(news=True)
        elif not self.purgatory.try_complete_else_watch(operation, [(group_id, member_id)]):
            self._of_groups.setdefault(group_id, {})[member_id] = operation
            self._of_connections[heartbeat.connection] = operation

    def release(self, group_id: str, member_id: str) -> None:
        """Answers a member's heartbeat, if one is held: there is no news."""
        if operation := self._of_groups.get(group_id, {}).get(member_id):
            operation.complete(news=False)

    def disconnected(self, connection: Hashable) -> None:
        """A connection is broken: what is held on it needs no answer."""
        if operation := self._of_connections.get(connection):
            operation.answer = None
            operation.force_complete()

    def changed(self, group_id: str, members: int) -> None:
        """A group has changed: whether there is news for its members is looked at soon, once for several changes.

        Args:
            members: how many it has.
        """
        if check := self._checks.get(group_id):
            check.again = check.left is not None
        elif group_id in self._of_groups:
            self._check_in(group_id, members // _MEMBERS_PER_MS)

    def _check_in(self, group_id: str, ms: int) -> None:
        check = self._checks[group_id] = _Check(self, group_id, self._wheel.now + ms)
        self._wheel.schedule(check)

    def _check(self, check: _Check) -> None:
        """Looks at the next portion of members."""
        group_id = check.group_id
        if check.left is None:
            check.left = list(self._of_groups.get(group_id, ()))[::-1]
        portion, check.left = check.left[-_PORTION:], check.left[:-_PORTION]
        for member_id in reversed(portion):
            self.purgatory.check_and_complete((group_id, member_id))
        if check.left:
            check.deadline = self._wheel.now + 1
            self._wheel.schedule(check)
            return
        del self._checks[group_id]
        held = self._of_groups.get(group_id)
        if held and (draft := self.draft(group_id, 0)) is not None and can_move_on(draft):
            next(iter(held.values())).complete(news=True)  # one heartbeat, whoever's it is, is enough
        if held and check.again:
            self._check_in(group_id, len(held) // _MEMBERS_PER_MS)

    def _completed(self, operation: _HeldHeartbeat) -> None:
        heartbeat = operation.heartbeat
        if self._of_connections.get(heartbeat.connection) is operation:
            del self._of_connections[heartbeat.connection]
        held = self._of_groups.get(heartbeat.group_id, {})
        if held.get(heartbeat.known.member_id) is operation:
            del held[heartbeat.known.member_id]
            if not held:
                del self._of_groups[heartbeat.group_id]
