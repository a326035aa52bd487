"""Session timeout and rebalance timeout of members.

A member has to send a heartbeat within the session timeout, and to confirm within the rebalance timeout that it revoked
what it was told to. Otherwise it is fenced: removed from its group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kohort.coordinator.timing_wheel import Timer, TimingWheel

RETRY_MS: Final = 5_000
"""Time after which the removal of a member is tried again if its records could not be appended."""


class MemberTimer(Timer):
    """The timer of one member, for both timeouts.

    A heartbeat only sets `last_heartbeat`, which is all that most heartbeats do. When the timer runs and nothing has
    timed out, it is scheduled again.

    Attributes:
        last_heartbeat: time of the latest heartbeat, in ms since 1970.
        session_timeout_ms: time without a heartbeat after which the member is removed.
        rebalance_deadline: when it must have confirmed a revocation, in ms since 1970; None if there is none.
        rebalance_epoch: the member epoch in which it was told to revoke.
    """

    __slots__ = (
        "_timers", "group_id", "last_heartbeat", "member_id", "rebalance_deadline", "rebalance_epoch",
        "session_timeout_ms",
    )  # fmt: skip

    def __init__(self, timers: MemberTimers, group_id: str, member_id: str, now: int, session_timeout_ms: int) -> None:
        super().__init__(now + session_timeout_ms)
        self._timers = timers
        self.group_id = group_id
        self.member_id = member_id
        self.last_heartbeat = now
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_deadline: int | None = None
        self.rebalance_epoch = 0

    def run(self) -> None:
        self._timers.check(self)

    def next_deadline(self) -> int:
        """The earlier end of both timeouts, in ms since 1970."""
        session_deadline = self.last_heartbeat + self.session_timeout_ms
        return session_deadline if self.rebalance_deadline is None else min(session_deadline, self.rebalance_deadline)


class MemberTimers:
    """The timers of all members of a shard's groups of one kind.

    Args:
        expired: has a member removed; gets its timer and the reason. Returns whether it will be: a revocation that the
            member doesn't know of isn't waited for any longer. When the removal is in the log, `stop` is called.
    """

    def __init__(self, wheel: TimingWheel, expired: Callable[[MemberTimer, str], bool]) -> None:
        self._wheel = wheel
        self._expired = expired
        self._timers: dict[tuple[str, str], MemberTimer] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def get(self, group_id: str, member_id: str) -> MemberTimer | None:
        return self._timers.get((group_id, member_id))

    def reset_session_timeout(self, group_id: str, member_id: str, now: int, session_timeout_ms: int) -> MemberTimer:
        """Starts a member's session timeout, or starts it over."""
        timer = self._timers.get((group_id, member_id))
        if timer is None:
            timer = self._timers[group_id, member_id] = MemberTimer(self, group_id, member_id, now, session_timeout_ms)
            self._wheel.schedule(timer)
        else:
            timer.last_heartbeat = now
            timer.session_timeout_ms = session_timeout_ms
            if timer.next_deadline() < timer.deadline:
                self._reschedule(timer)
        return timer

    def start_rebalance_timeout(self, group_id: str, member_id: str, epoch: int, deadline: int) -> None:
        """The member was told in this epoch to revoke something; it has to confirm that by the deadline."""
        timer = self._timers[group_id, member_id]
        timer.rebalance_deadline, timer.rebalance_epoch = deadline, epoch
        if timer.next_deadline() < timer.deadline:
            self._reschedule(timer)

    def stop_rebalance_timeout(self, group_id: str, member_id: str) -> None:
        self._timers[group_id, member_id].rebalance_deadline = None

    def stop(self, group_id: str, member_id: str) -> None:
        if timer := self._timers.pop((group_id, member_id), None):
            timer.cancel()

    def check(self, timer: MemberTimer) -> None:
        """Has the member removed if a timeout is over, else schedules the timer again."""
        now = self._wheel.now
        silent = now - timer.last_heartbeat
        reason = ""
        if silent >= timer.session_timeout_ms:
            reason = f"session timeout: it sent no heartbeat for {silent} ms"
        elif timer.rebalance_deadline is not None and now >= timer.rebalance_deadline:
            reason = (
                f"rebalance timeout: it did not confirm in time what it had to revoke on epoch {timer.rebalance_epoch}"
            )
        if reason and self._expired(timer, reason):
            timer.deadline = now + RETRY_MS
        else:
            if reason:
                timer.rebalance_deadline = None
            timer.deadline = timer.next_deadline()
        self._wheel.schedule(timer)

    def _reschedule(self, timer: MemberTimer) -> None:
        timer.cancel()
        timer.deadline = timer.next_deadline()
        self._wheel.schedule(timer)
