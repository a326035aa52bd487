"""The two clocks of a member: it has to be heard of, and to give up in time what it was told to give up."""

from __future__ import annotations

from collections.abc import Callable

from kohort.coordinator.timing_wheel import Timer, TimingWheel

__all__ = ["Clock", "Clocks"]


class Clock(Timer):
    """The clocks of one member.

    A sign of life only notes the time, which is all that most heartbeats do; the timer looks at its deadline whether
    anything is due by then, and otherwise waits on.

    Attributes:
        heard: the latest sign of life, in ms since 1970.
        session_timeout_ms: silence after which the member is gone.
        revoke_by: when it must have confirmed a revocation, in ms since 1970; None if there is none.
        revoke_epoch: the member epoch in which it was told.
    """

    __slots__ = ("_clocks", "group_id", "heard", "member_id", "revoke_by", "revoke_epoch", "session_timeout_ms")

    def __init__(self, clocks: Clocks, group_id: str, member_id: str, now: int, session_timeout_ms: int) -> None:
        super().__init__(now + session_timeout_ms)
        self._clocks = clocks
        self.group_id = group_id
        self.member_id = member_id
        self.heard = now
        self.session_timeout_ms = session_timeout_ms
        self.revoke_by: int | None = None
        self.revoke_epoch = 0

    def run(self) -> None:
        """See what is due."""
        self._clocks.look(self)

    def next_deadline(self) -> int:
        """When something may be due."""
        silent = self.heard + self.session_timeout_ms
        return silent if self.revoke_by is None else min(silent, self.revoke_by)


class Clocks:
    """The clocks of all members of a shard's groups of one kind.

    Args:
        wheel: where the timers wait.
        expired: takes the clock of a member whose time is up, and what it failed to do. Returns whether that was so;
            a revocation that the member doesn't know of isn't waited for any longer.
    """

    def __init__(self, wheel: TimingWheel, expired: Callable[[Clock, str], bool]) -> None:
        self._wheel = wheel
        self._expired = expired
        self._clocks: dict[tuple[str, str], Clock] = {}

    def __len__(self) -> int:
        """Number of members that are watched."""
        return len(self._clocks)

    def get(self, group_id: str, member_id: str) -> Clock | None:
        """A member's clock."""
        return self._clocks.get((group_id, member_id))

    def heard(self, group_id: str, member_id: str, now: int, session_timeout_ms: int) -> Clock:
        """A member has shown a sign of life: the next is due within the timeout, in ms."""
        clock = self._clocks.get((group_id, member_id))
        if clock is None:
            clock = self._clocks[group_id, member_id] = Clock(self, group_id, member_id, now, session_timeout_ms)
            self._wheel.schedule(clock)
        else:
            clock.heard = now
            clock.session_timeout_ms = session_timeout_ms
            if clock.next_deadline() < clock.deadline:
                self._rearm(clock)
        return clock

    def must_revoke(self, clock: Clock, epoch: int, by: int) -> None:
        """The member was told to give something up, in this epoch; it has to confirm that by then."""
        clock.revoke_by, clock.revoke_epoch = by, epoch
        if clock.next_deadline() < clock.deadline:
            self._rearm(clock)

    def stop(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        if clock := self._clocks.pop((group_id, member_id), None):
            clock.cancel()

    def look(self, clock: Clock) -> None:
        """A clock's timer ran: is the member late?"""
        now = self._wheel.now
        silent = now - clock.heard
        failing = ""
        if silent >= clock.session_timeout_ms:
            failing = f"nothing was heard of it for {silent} ms"
        elif clock.revoke_by is not None and now >= clock.revoke_by:
            failing = f"it did not confirm in time what it was told to give up on epoch {clock.revoke_epoch}"
        if failing and self._expired(clock, failing):
            self._clocks.pop((clock.group_id, clock.member_id), None)
            return
        if failing:
            clock.revoke_by = None
        clock.deadline = clock.next_deadline()
        self._wheel.schedule(clock)

    def _rearm(self, clock: Clock) -> None:
        clock.cancel()
        clock.deadline = clock.next_deadline()
        self._wheel.schedule(clock)
