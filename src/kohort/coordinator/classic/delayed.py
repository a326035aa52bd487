"""What waits in the purgatories of classic groups: for a sign of life, for members to join, and for them to sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.purgatory import DelayedOperation

if TYPE_CHECKING:
    from kohort.coordinator.classic.rebalancer import Rebalancer

__all__ = ["DelayedHeartbeat", "DelayedJoin", "DelayedSync", "InitialJoin", "PendingMember"]


class DelayedHeartbeat(DelayedOperation):
    """Waits for a sign of life of a member; at its deadline the member has failed."""

    __slots__ = ("group", "member", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, member: Member, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group
        self.member = member

    def try_complete(self) -> bool:
        """Complete if the member is kept alive, or is leaving."""
        return self.group.keeps_alive(self.member) and self.force_complete()

    def on_expiration(self) -> None:
        """Remove the member, unless it waits for an answer just now."""
        if not self.group.keeps_alive(self.member):
            self.rebalancer.fail_member(self.group, self.member)


class PendingMember(DelayedOperation):
    """Waits for a client to join with the member id it was given (KIP-394); at its deadline the id is void."""

    __slots__ = ("group", "member_id", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, member_id: str, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group
        self.member_id = member_id

    def try_complete(self) -> bool:
        """Complete if the id isn't pending any more."""
        return self.member_id not in self.group.pending_ids and self.force_complete()

    def on_expiration(self) -> None:
        """Forget the id."""
        self.rebalancer.forget_pending(self.group, self.member_id)


class DelayedJoin(DelayedOperation):
    """Waits for all members to rejoin; at its deadline the rebalance goes on without the others (KIP-62)."""

    __slots__ = ("group", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group

    def try_complete(self) -> bool:
        """Complete if all members have joined."""
        return self.group.all_joined and self.force_complete()

    def on_complete(self) -> None:
        """Begin the next generation."""
        self.rebalancer.complete_join(self.group)


class InitialJoin(DelayedJoin):
    """Gives the first members of a group some time to come together; more time while they come.

    It waits `delay_ms` in any case, however many have joined, and as long as newcomers keep coming for up to
    `remaining_ms` more.
    """

    __slots__ = ("delay_ms", "remaining_ms")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, now: int, delay_ms: int, remaining_ms: int) -> None:
        super().__init__(rebalancer, group, now + delay_ms)
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Nothing but time completes it."""
        return False

    def on_complete(self) -> None:
        """Begin the first generation, or wait again."""
        self.rebalancer.complete_initial_join(self)


class DelayedSync(DelayedOperation):
    """Waits for all members of a generation to send SyncGroup; at its deadline those that haven't are removed."""

    __slots__ = ("group", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group

    def try_complete(self) -> bool:
        """Complete if all have."""
        return not self.group.unsynced and self.force_complete()

    def on_expiration(self) -> None:
        """Remove the silent ones."""
        self.rebalancer.fail_unsynced(self.group)
