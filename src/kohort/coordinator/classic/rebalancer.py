"""Rebalances of classic groups, and the sessions of their members.

    PREPARING_REBALANCE   `prepare_rebalance`: members have to rejoin within the rebalance timeout; an empty group waits
                          for the initial rebalance delay
    COMPLETING_REBALANCE  `complete_join`: the next generation; members have to sync within the rebalance timeout
    STABLE                the leader's assignments are in the log: see `sync` in `groups`
    EMPTY                 nobody has rejoined

A rebalance is in memory alone. The timeouts are the operations of `timeouts`.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

from kohort.coordinator.classic.effects import Effects
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.records import group_record
from kohort.coordinator.classic.responses import join_refused, join_response, sync_refused
from kohort.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicSettings
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.classic.timeouts import (
    DelayedHeartbeat,
    DelayedJoin,
    DelayedPendingMember,
    DelayedSync,
    InitialDelayedJoin,
)
from kohort.coordinator.member_lines import tell_joined, tell_removed
from kohort.coordinator.purgatory import Purgatory
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_ALL_AWAY_MS: Final = 1_000
"""Shortest wait, in ms, when nobody has rejoined, since the members' own rebalance timeout may be 0."""


class Rebalancer:
    """Moves classic groups through their states.

    Attributes:
        heartbeats: session timeouts, by `Member`, and by group and id for pending members.
        joins: groups that wait for members to join, by `ClassicGroup`.
        syncs: groups that wait for members to sync, by `ClassicGroup`.
    """

    def __init__(self, settings: ClassicSettings, wheel: TimingWheel, effects: Effects) -> None:
        self.heartbeats = Purgatory("heartbeat", wheel)
        self.joins = Purgatory("join", wheel)
        self.syncs = Purgatory("sync", wheel)
        self._settings = settings
        self._effects = effects

    # Sessions ---------------------------------------------------------------------------------------------------

    def reset_session_timeout(
        self, group: ClassicGroup, member: Member, now: int, timeout_ms: int | None = None
    ) -> None:
        """Starts the session timeout over, or `timeout_ms` in its place."""
        heartbeats = self.heartbeats
        member.heartbeat_satisfied = True
        heartbeats.check_and_complete(member)
        member.heartbeat_satisfied = False
        timeout = member.session_timeout_ms if timeout_ms is None else timeout_ms
        heartbeats.try_complete_else_watch(
            DelayedHeartbeat(group, member, now + timeout, self.expire_session), (member,)
        )

    def cancel_session_timeout(self, member: Member) -> None:
        member.is_leaving = True
        self.heartbeats.check_and_complete(member)

    def expire_session(self, group: ClassicGroup, member: Member) -> None:
        """Removes a member that sent no heartbeat within its session timeout."""
        if group.members.get(member.member_id) is not member:
            return
        with self._effects.of_timer():
            self.remove(group, member, "session timeout: it sent no heartbeat in time")
            self.rebalance_after_removal(group, f"the session of member {member.member_id} timed out")

    def add_pending_member(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Gives a client `timeout_ms` to join with the id that it was given."""
        group.pending_members.add(member_id)
        operation = DelayedPendingMember(group, member_id, self._effects.now + timeout_ms, self.remove_pending_member)
        self.heartbeats.try_complete_else_watch(operation, (_pending_key(group, member_id),))

    def remove_pending_member(self, group: ClassicGroup, member_id: str) -> None:
        """Forgets a pending id, whose client left or never came back."""
        with self._effects.of_timer():
            group.pending_members.discard(member_id)
            self.heartbeats.check_and_complete(_pending_key(group, member_id))
            self.joins.check_and_complete(group)

    # Members ----------------------------------------------------------------------------------------------------

    def add(self, group: ClassicGroup, member: Member) -> None:
        """Adds a new member, which waits for the answer to its first join."""
        tell_joined(group.group_id, member.member_id, member.instance_id, member.client_id, member.client_host)
        if group.state is GroupState.PREPARING_REBALANCE:
            group.new_member_added = True
        group.add(member)
        self.heartbeats.check_and_complete(_pending_key(group, member.member_id))
        member.is_new = True
        self.reset_session_timeout(group, member, self._effects.now, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def remove(self, group: ClassicGroup, member: Member, why: str) -> None:
        """Removes a member. If it waits for an answer, it gets an error that makes it join again."""
        tell_removed(group.group_id, member.member_id, member.client_id, member.client_host, why)
        self.cancel_session_timeout(member)
        self._refuse_waiting(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        group.remove(member)

    def replace_static_member(self, group: ClassicGroup, old: Member, new: Member) -> None:
        """Replaces a static member by its new self, whose join waits, and fences the old one (KIP-345)."""
        self.cancel_session_timeout(old)
        self._refuse_waiting(group, old, ErrorCode.FENCED_INSTANCE_ID)
        group.replace_static_member(old, new)

    def rebalance_after_removal(self, group: ClassicGroup, reason: str) -> None:
        """Rebalances after members were removed; completes the rebalance under way if it waited only for those."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.joins.check_and_complete(group)
        elif group.state is not GroupState.EMPTY:
            self.prepare_rebalance(group, reason)

    def _refuse_waiting(self, group: ClassicGroup, member: Member, code: ErrorCode) -> None:
        if waiting := group.joining.pop(member.member_id, None):
            # A client whose join is cut short starts over, without an id.
            known = member.member_id if code is ErrorCode.FENCED_INSTANCE_ID else ""
            self._effects.answer(waiting.reply, join_refused(code, known, waiting.version))
        if waiting := group.syncing.pop(member.member_id, None):
            self._effects.answer(waiting.reply, sync_refused(code))

    def mark_dead(self, group: ClassicGroup) -> None:
        """Cancels all that waits, and makes the group DEAD."""
        for member in group.members.values():
            self.cancel_session_timeout(member)
        for member_id in group.pending_members:
            self.heartbeats.cancel(_pending_key(group, member_id))
        self.joins.cancel(group)
        self.syncs.cancel(group)
        group.transition_to(GroupState.DEAD, self._effects.now)

    # Rebalance --------------------------------------------------------------------------------------------------

    def rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Begins a rebalance, or completes the one under way if all have joined."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.joins.check_and_complete(group)
        else:
            self.prepare_rebalance(group, reason)

    def prepare_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Ends the generation, so that members have to join again."""
        now = self._effects.now
        first = group.state is GroupState.EMPTY
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.fail_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self.syncs.cancel(group)
        group.transition_to(GroupState.PREPARING_REBALANCE, now)
        log.info("rebalance group=%s generation=%d reason=%s", group.group_id, group.generation, reason)
        if first:
            delay = self._settings.group_initial_rebalance_delay_ms
            remaining = max(group.rebalance_timeout_ms - delay, 0)
            group.new_member_added = False
            initial = InitialDelayedJoin(group, now, delay, remaining, self.complete_initial_join)
            self.joins.try_complete_else_watch(initial, (group,))
        else:
            self._await_joins(group)

    def _await_joins(self, group: ClassicGroup, at_least_ms: int = 0) -> None:
        deadline = self._effects.now + max(group.rebalance_timeout_ms, at_least_ms)
        self.joins.try_complete_else_watch(DelayedJoin(group, deadline, self.complete_join), (group,))

    def complete_initial_join(self, join: InitialDelayedJoin) -> None:
        """Begins the first generation; or waits again, for a further initial rebalance delay, if members were added."""
        group = join.group
        with self._effects.of_timer():
            if group.new_member_added and join.remaining_ms:
                group.new_member_added = False
                delay = min(self._settings.group_initial_rebalance_delay_ms, join.remaining_ms)
                remaining = max(join.remaining_ms - join.delay_ms, 0)
                following = InitialDelayedJoin(group, self._effects.now, delay, remaining, self.complete_initial_join)
                self.joins.try_complete_else_watch(following, (group,))
            else:
                self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Begins the next generation with the members that have joined, and with static ones, joined or not."""
        with self._effects.of_timer():
            now = self._effects.now
            absent = [member for member_id, member in group.members.items() if member_id not in group.joining]
            for member in absent:
                if member.instance_id is None:
                    self.remove(group, member, "rebalance timeout: it didn't rejoin in time")
            if group.members and not group.elect_joined_leader():
                # Only static members, none of which has joined: wait until one does, or their sessions time out.
                self._await_joins(group, _ALL_AWAY_MS)
                return
            group.next_generation()
            if not group.members:
                group.transition_to(GroupState.EMPTY, now)
                log.info("group is empty group=%s generation=%d", group.group_id, group.generation)
                self._effects.record(group_record(group, (), None, {}, now))
                return
            group.transition_to(GroupState.COMPLETING_REBALANCE, now)
            members, generation = len(group.members), group.generation
            log.info("new generation group=%s generation=%d members=%d", group.group_id, generation, members)
            self._answer_joins(group, now)
            group.pending_sync.update(group.members)
            deadline = now + group.rebalance_timeout_ms
            self.syncs.try_complete_else_watch(DelayedSync(group, deadline, self.expire_pending_sync), (group,))

    def _answer_joins(self, group: ClassicGroup, now: int) -> None:
        joining, group.joining = group.joining, {}
        for member_id, waiting in joining.items():
            member = group.members[member_id]
            response = join_response(group, member, members=group.members.values(), leader=group.leader)
            self._effects.answer(waiting.reply, response)
            self.reset_session_timeout(group, member, now)
            member.is_new = False

    # Sync -------------------------------------------------------------------------------------------------------

    def remove_pending_sync(self, group: ClassicGroup, member: Member) -> None:
        group.pending_sync.discard(member.member_id)
        self.syncs.check_and_complete(group)

    def fail_assignment(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Answers the waiting SyncGroup requests with this error, and drops the assignments."""
        syncing, group.syncing = group.syncing, {}
        for member in group.members.values():
            member.assignment = b""
        for member_id, waiting in syncing.items():
            self._effects.answer(waiting.reply, sync_refused(code))
            self.reset_session_timeout(group, group.members[member_id], self._effects.now)

    def expire_pending_sync(self, group: ClassicGroup) -> None:
        """Removes the members that joined a generation but sent no SyncGroup in time, and rebalances."""
        with self._effects.of_timer():
            silent = [member for member_id, member in group.members.items() if member_id in group.pending_sync]
            if not silent:
                return  # static members that had not synced have come back since, with their assignments
            for member in silent:
                self.remove(group, member, "rebalance timeout: it didn't sync in time")
            self.prepare_rebalance(group, f"{len(silent)} members didn't sync")


def _pending_key(group: ClassicGroup, member_id: str) -> Hashable:
    return group, member_id
