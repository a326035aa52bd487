"""The life of classic groups: members are heard of or fail, generations end and begin.

All of it happens in memory. A generation counts when its assignments are in the log: see `sync` in `groups`.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

from kohort.coordinator.classic.delayed import DelayedHeartbeat, DelayedJoin, DelayedSync, InitialJoin, PendingMember
from kohort.coordinator.classic.effects import Effects
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.records import group_record
from kohort.coordinator.classic.responses import join_refused, joined, sync_refused
from kohort.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicSettings
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.purgatory import Purgatory
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode

__all__ = ["Rebalancer"]

log = logging.getLogger(__name__)

_ALL_AWAY_MS: Final = 1_000
"""How long at least to wait, in ms, when nobody has rejoined; the members' own rebalance timeout may be 0."""


class Rebalancer:
    """Moves classic groups through their states.

    Attributes:
        heartbeats: members that have to be heard of, by `Member`, and pending ids.
        joins: groups that wait for members to join, by `ClassicGroup`.
        syncs: groups that wait for members to sync, by `ClassicGroup`.
    """

    def __init__(self, settings: ClassicSettings, wheel: TimingWheel, effects: Effects) -> None:
        self.heartbeats = Purgatory("heartbeat", wheel)
        self.joins = Purgatory("join", wheel)
        self.syncs = Purgatory("sync", wheel)
        self._settings = settings
        self._effects = effects

    # Signs of life ----------------------------------------------------------------------------------------------

    def heard(self, group: ClassicGroup, member: Member, now: int, timeout_ms: int | None = None) -> None:
        """Note a sign of life, and expect the next one within the session timeout, or within `timeout_ms`."""
        heartbeats = self.heartbeats
        member.heard = True
        heartbeats.check_and_complete(member)
        member.heard = False
        timeout = member.session_timeout_ms if timeout_ms is None else timeout_ms
        heartbeats.try_complete_else_watch(DelayedHeartbeat(self, group, member, now + timeout), (member,))

    def forget(self, member: Member) -> None:
        """Expect no more signs of life: the member is leaving."""
        member.leaving = True
        self.heartbeats.check_and_complete(member)

    def fail_member(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member that wasn't heard of in time."""
        if group.members.get(member.member_id) is not member:
            return
        with self._effects.of_timer():
            self.remove(group, member)
            log.info("member failed group=%s member=%s", group.group_id, member.member_id)
            self.after_removal(group, f"member {member.member_id} failed")

    def expect_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Give a client so much time to join with the id that it was given."""
        group.pending_ids.add(member_id)
        operation = PendingMember(self, group, member_id, self._effects.now + timeout_ms)
        self.heartbeats.try_complete_else_watch(operation, (_pending_key(group, member_id),))

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Give up a pending id: its client left, or never came back."""
        with self._effects.of_timer():
            group.pending_ids.discard(member_id)
            self.heartbeats.check_and_complete(_pending_key(group, member_id))
            self.joins.check_and_complete(group)

    # Members come and go ----------------------------------------------------------------------------------------

    def add(self, group: ClassicGroup, member: Member) -> None:
        """Take in a new member that waits for its first join."""
        if group.state is GroupState.PREPARING_REBALANCE:
            group.newcomers = True
        group.add(member)
        self.heartbeats.check_and_complete(_pending_key(group, member.member_id))
        member.new = True
        self.heard(group, member, self._effects.now, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def remove(self, group: ClassicGroup, member: Member, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Let a member go; if it waits for an answer, it gets this error, which makes it join anew."""
        self.forget(member)
        self._refuse_waiting(group, member, code)
        group.remove(member)

    def replace(self, group: ClassicGroup, old: Member, new: Member) -> None:
        """Put a static member, whose join has to wait, in the place of its former self, which is fenced (KIP-345)."""
        self.forget(old)
        self._refuse_waiting(group, old, ErrorCode.FENCED_INSTANCE_ID)
        group.replace(old, new)

    def after_removal(self, group: ClassicGroup, reason: str) -> None:
        """Rebalance after members have gone, or see whether the others are complete now."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.joins.check_and_complete(group)
        elif group.state is not GroupState.EMPTY:
            self.prepare(group, reason)

    def _refuse_waiting(self, group: ClassicGroup, member: Member, code: ErrorCode) -> None:
        if waiting := group.joining.pop(member.member_id, None):
            # A client whose join is cut short starts over, without an id.
            known = member.member_id if code is ErrorCode.FENCED_INSTANCE_ID else ""
            self._effects.answer(waiting.reply, join_refused(code, known, waiting.version))
        if waiting := group.syncing.pop(member.member_id, None):
            self._effects.answer(waiting.reply, sync_refused(code))

    def bury(self, group: ClassicGroup) -> None:
        """Nothing is to happen to a group any more."""
        for member in group.members.values():
            self.forget(member)
        for member_id in group.pending_ids:
            self.heartbeats.cancel(_pending_key(group, member_id))
        self.joins.cancel(group)
        self.syncs.cancel(group)
        group.become(GroupState.DEAD, self._effects.now)

    # Rebalance --------------------------------------------------------------------------------------------------

    def rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance, or see whether the one under way is complete now."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.joins.check_and_complete(group)
        else:
            self.prepare(group, reason)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """End the generation: members are to join again."""
        now = self._effects.now
        first = group.state is GroupState.EMPTY
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.abandon_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.unsynced.clear()
        self.syncs.cancel(group)
        group.become(GroupState.PREPARING_REBALANCE, now)
        log.info("rebalance group=%s generation=%d reason=%s", group.group_id, group.generation, reason)
        if first:
            delay = self._settings.group_initial_rebalance_delay_ms
            remaining = max(group.rebalance_timeout_ms - delay, 0)
            group.newcomers = False
            self.joins.try_complete_else_watch(InitialJoin(self, group, now, delay, remaining), (group,))
        else:
            self._await_joins(group)

    def _await_joins(self, group: ClassicGroup, at_least_ms: int = 0) -> None:
        deadline = self._effects.now + max(group.rebalance_timeout_ms, at_least_ms)
        self.joins.try_complete_else_watch(DelayedJoin(self, group, deadline), (group,))

    def complete_initial_join(self, join: InitialJoin) -> None:
        """Begin the first generation, unless newcomers make it worth while to wait for more of them."""
        group = join.group
        with self._effects.of_timer():
            if group.newcomers and join.remaining_ms:
                group.newcomers = False
                delay = min(self._settings.group_initial_rebalance_delay_ms, join.remaining_ms)
                remaining = max(join.remaining_ms - join.delay_ms, 0)
                following = InitialJoin(self, group, self._effects.now, delay, remaining)
                self.joins.try_complete_else_watch(following, (group,))
            else:
                self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with the members that have joined, and with static ones, joined or not."""
        with self._effects.of_timer():
            now = self._effects.now
            absent = [member for member_id, member in group.members.items() if member_id not in group.joining]
            for member in absent:
                if member.instance_id is None:
                    self.remove(group, member)
                    log.info("member didn't rejoin in time group=%s member=%s", group.group_id, member.member_id)
            if group.members and not group.elect_joined_leader():
                # Static members alone, and all of them away: wait until they come, or their sessions end.
                self._await_joins(group, _ALL_AWAY_MS)
                return
            group.next_generation()
            if not group.members:
                group.become(GroupState.EMPTY, now)
                log.info("group is empty group=%s generation=%d", group.group_id, group.generation)
                self._effects.record(group_record(group, (), None, {}, now))
                return
            group.become(GroupState.COMPLETING_REBALANCE, now)
            members, generation = len(group.members), group.generation
            log.info("new generation group=%s generation=%d members=%d", group.group_id, generation, members)
            self._answer_joins(group, now)
            group.unsynced.update(group.members)
            deadline = now + group.rebalance_timeout_ms
            self.syncs.try_complete_else_watch(DelayedSync(self, group, deadline), (group,))

    def _answer_joins(self, group: ClassicGroup, now: int) -> None:
        joining, group.joining = group.joining, {}
        for member_id, waiting in joining.items():
            member = group.members[member_id]
            response = joined(group, member, members=group.members.values(), leader=group.leader)
            self._effects.answer(waiting.reply, response)
            self.heard(group, member, now)
            member.new = False

    # Sync -------------------------------------------------------------------------------------------------------

    def note_sync(self, group: ClassicGroup, member: Member) -> None:
        """A member has sent SyncGroup."""
        group.unsynced.discard(member.member_id)
        self.syncs.check_and_complete(group)

    def abandon_assignment(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Tell those that wait for their assignment that it won't come."""
        syncing, group.syncing = group.syncing, {}
        for member in group.members.values():
            member.assignment = b""
        for member_id, waiting in syncing.items():
            self._effects.answer(waiting.reply, sync_refused(code))
            self.heard(group, group.members[member_id], self._effects.now)

    def fail_unsynced(self, group: ClassicGroup) -> None:
        """Remove the members that joined a generation and then kept silent, and rebalance."""
        with self._effects.of_timer():
            silent = [member for member_id, member in group.members.items() if member_id in group.unsynced]
            if not silent:
                return  # static members that had been silent have come back since, with their assignments
            for member in silent:
                log.info("member didn't sync in time group=%s member=%s", group.group_id, member.member_id)
                self.remove(group, member)
            self.prepare(group, f"{len(silent)} members didn't sync")


def _pending_key(group: ClassicGroup, member_id: str) -> Hashable:
    return group, member_id
