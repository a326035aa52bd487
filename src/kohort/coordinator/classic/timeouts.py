"""The timeouts of classic groups, as delayed operations in a purgatory.

DelayedHeartbeat      session timeout: a member that sends no heartbeat within it is removed
DelayedPendingMember  session timeout of a client that was given a member id and has yet to join with it (KIP-394)
InitialDelayedJoin    group.initial.rebalance.delay.ms: an empty group waits for more members after the first
DelayedJoin           rebalance timeout: members that haven't rejoined within it are removed
DelayedSync           rebalance timeout: members that haven't sent SyncGroup within it are removed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.purgatory import DelayedOperation

if TYPE_CHECKING:
    from kohort.coordinator.classic.rebalancer import Rebalancer


class DelayedHeartbeat(DelayedOperation):
    """Waits for the next heartbeat of a member; its deadline is the session timeout."""

    __slots__ = ("group", "member", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, member: Member, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group
        self.member = member

    def try_complete(self) -> bool:
        return self.group.should_keep_alive(self.member) and self.force_complete()

    def on_expiration(self) -> None:
        if not self.group.should_keep_alive(self.member):
            self.rebalancer.expire_session(self.group, self.member)


class DelayedPendingMember(DelayedOperation):
    """Waits for a client to join with the member id it was given (KIP-394); at its deadline the id is void."""

    __slots__ = ("group", "member_id", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, member_id: str, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group
        self.member_id = member_id

    def try_complete(self) -> bool:
        return self.member_id not in self.group.pending_members and self.force_complete()

    def on_expiration(self) -> None:
        self.rebalancer.remove_pending_member(self.group, self.member_id)


class DelayedJoin(DelayedOperation):
    """Waits for all members to rejoin; at its deadline the rebalance goes on without the others (KIP-62)."""

    __slots__ = ("group", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group

    def try_complete(self) -> bool:
        return self.group.all_joined and self.force_complete()

    def on_complete(self) -> None:
        self.rebalancer.complete_join(self.group)


class InitialDelayedJoin(DelayedJoin):
    """Gives the first members of a group some time to come together; more time while they come.

    It always waits `delay_ms`, however many have joined. While new members keep coming it waits again, for up to
    `remaining_ms` more.
    """

    __slots__ = ("delay_ms", "remaining_ms")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, now: int, delay_ms: int, remaining_ms: int) -> None:
        super().__init__(rebalancer, group, now + delay_ms)
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Only its deadline completes it."""
        return False

    def on_complete(self) -> None:
        self.rebalancer.complete_initial_join(self)


class DelayedSync(DelayedOperation):
    """Waits for all members of a generation to send SyncGroup; at its deadline those that haven't are removed."""

    __slots__ = ("group", "rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: ClassicGroup, deadline: int) -> None:
        super().__init__(deadline)
        self.rebalancer = rebalancer
        self.group = group

    def try_complete(self) -> bool:
        return not self.group.pending_sync and self.force_complete()

    def on_expiration(self) -> None:
        self.rebalancer.expire_pending_sync(self.group)
