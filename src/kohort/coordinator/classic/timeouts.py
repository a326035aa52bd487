"""The timeouts of classic groups, as delayed operations in a purgatory.

DelayedHeartbeat      session timeout: a member that sends no heartbeat within it is removed
DelayedPendingMember  session timeout of a client that was given a member id and has yet to join with it (KIP-394)
InitialDelayedJoin    group.initial.rebalance.delay.ms: an empty group waits for more members after the first
DelayedJoin           rebalance timeout: members that haven't rejoined within it are removed
DelayedSync           rebalance timeout: members that haven't sent SyncGroup within it are removed
"""

from __future__ import annotations

from collections.abc import Callable

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.purgatory import DelayedOperation


class DelayedHeartbeat(DelayedOperation):
    """Waits for the next heartbeat of a member; its deadline is the session timeout."""

    __slots__ = ("expire", "group", "member")

    def __init__(
        self, group: ClassicGroup, member: Member, deadline: int, expire: Callable[[ClassicGroup, Member], None]
    ) -> None:
        super().__init__(deadline)
        self.expire = expire
        self.group = group
        self.member = member

    def try_complete(self) -> bool:
        return self.group.should_keep_alive(self.member) and self.force_complete()

    def on_expiration(self) -> None:
        if not self.group.should_keep_alive(self.member):
            self.expire(self.group, self.member)


class DelayedPendingMember(DelayedOperation):
    """Waits for a client to join with the member id it was given (KIP-394); at its deadline the id is void."""

    __slots__ = ("expire", "group", "member_id")

    def __init__(
        self, group: ClassicGroup, member_id: str, deadline: int, expire: Callable[[ClassicGroup, str], None]
    ) -> None:
        super().__init__(deadline)
        self.expire = expire
        self.group = group
        self.member_id = member_id

    def try_complete(self) -> bool:
        return self.member_id not in self.group.pending_members and self.force_complete()

    def on_expiration(self) -> None:
        self.expire(self.group, self.member_id)


class DelayedJoin(DelayedOperation):
    """Waits for all members to rejoin; at its deadline the rebalance goes on without the others (KIP-62)."""

    __slots__ = ("complete", "group")

    def __init__(self, group: ClassicGroup, deadline: int, complete: Callable[[ClassicGroup], None]) -> None:
        super().__init__(deadline)
        self.complete = complete
        self.group = group

    def try_complete(self) -> bool:
        return self.group.all_joined and self.force_complete()

    def on_complete(self) -> None:
        self.complete(self.group)


class InitialDelayedJoin(DelayedOperation):
    """Gives the first members of a group some time to come together; more time while they come.

    It always waits `delay_ms`, however many have joined. While new members keep coming it waits again, for up to
    `remaining_ms` more.
    """

    __slots__ = ("complete", "delay_ms", "group", "remaining_ms")

    def __init__(
        self,
        group: ClassicGroup,
        now: int,
        delay_ms: int,
        remaining_ms: int,
        complete: Callable[[InitialDelayedJoin], None],
    ) -> None:
        super().__init__(now + delay_ms)
        self.complete = complete
        self.group = group
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Only its deadline completes it."""
        return False

    def on_complete(self) -> None:
        self.complete(self)


class DelayedSync(DelayedOperation):
    """Waits for all members of a generation to send SyncGroup; at its deadline those that haven't are removed."""

    __slots__ = ("expire", "group")

    def __init__(self, group: ClassicGroup, deadline: int, expire: Callable[[ClassicGroup], None]) -> None:
        super().__init__(deadline)
        self.expire = expire
        self.group = group

    def try_complete(self) -> bool:
        return not self.group.pending_sync and self.force_complete()

    def on_expiration(self) -> None:
        self.expire(self.group)
