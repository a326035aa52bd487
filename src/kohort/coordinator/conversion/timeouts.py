"""Join and sync timeouts of classic members in consumer groups; both are the member's rebalance timeout.

    timeout   begins when                                        ends when
    --------  -------------------------------------------------  -------------------------------------
    join      a heartbeat or SyncGroup answers that it must      it sends JoinGroup
              rejoin: REBALANCE_IN_PROGRESS
    sync      JoinGroup is answered                              it sends SyncGroup

A member for which one of them is over is removed, as one is whose session is: without its JoinGroup nobody knows
whether it has revoked what others are to get.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kohort.coordinator.timing_wheel import Timer, TimingWheel


class ClassicTimeouts:
    """The join and sync timeouts of a shard.

    Args:
        expired: gets group id, member id and the reason. The member may have gone in the meantime.
    """

    def __init__(self, wheel: TimingWheel, expired: Callable[[str, str, str], None]) -> None:
        self._wheel = wheel
        self._expired = expired
        self._joins: dict[tuple[str, str], Timer] = {}
        self._syncs: dict[tuple[str, str], Timer] = {}

    def __len__(self) -> int:
        return len(self._joins) + len(self._syncs)

    def await_join(self, group_id: str, member_id: str, deadline: int) -> None:
        """Begins the join timeout, if it hasn't begun; `deadline` is in ms since 1970."""
        if (group_id, member_id) not in self._joins:
            self._start(self._joins, group_id, member_id, deadline, "it didn't join again within its rebalance timeout")

    def joined(self, group_id: str, member_id: str, deadline: int) -> None:
        """Ends the join timeout, and begins the sync timeout."""
        self._stop(self._joins, group_id, member_id)
        self._stop(self._syncs, group_id, member_id)
        self._start(self._syncs, group_id, member_id, deadline, "it didn't sync within its rebalance timeout")

    def synced(self, group_id: str, member_id: str) -> None:
        """Ends the sync timeout."""
        self._stop(self._syncs, group_id, member_id)

    def stop(self, group_id: str, member_id: str) -> None:
        """Ends both, as the member has gone."""
        self._stop(self._joins, group_id, member_id)
        self._stop(self._syncs, group_id, member_id)

    def stop_all(self) -> None:
        for timers in (self._joins, self._syncs):
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    def _start(
        self, timers: dict[tuple[str, str], Timer], group_id: str, member_id: str, deadline: int, why: str
    ) -> None:
        expire = partial(self._expire, timers, group_id, member_id, why)
        timers[group_id, member_id] = self._wheel.add(deadline, expire)

    def _stop(self, timers: dict[tuple[str, str], Timer], group_id: str, member_id: str) -> None:
        if timer := timers.pop((group_id, member_id), None):
            timer.cancel()

    def _expire(self, timers: dict[tuple[str, str], Timer], group_id: str, member_id: str, why: str) -> None:
        del timers[group_id, member_id]
        self._expired(group_id, member_id, why)
