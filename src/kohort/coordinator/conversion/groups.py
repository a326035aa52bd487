"""Consumer groups that classic groups may become and that may become classic ones, with members of both protocols.

    upgrade       a member of the consumer protocol joins a classic group of consumers that has members
    both          classic members join, sync, send heartbeats and leave: `classic_members`
    downgrade     the last member of the consumer protocol leaves, is fenced, or is replaced by a classic static member

Groups without members are converted whatever the policy: `GroupShard`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial

from kohort.coordinator.classic.groups import ClassicGroups
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.groups import ConsumerGroups
from kohort.coordinator.consumer.heartbeats import MemberUpdate
from kohort.coordinator.conversion.downgrade import downgrade, may_downgrade
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.conversion.timeouts import ClassicTimeouts
from kohort.coordinator.conversion.upgrade import check_upgrade, upgrade
from kohort.coordinator.member_lines import tell_removed
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import LEAVE_GROUP_MEMBER_EPOCH
from kohort.coordinator.modern.member_identity import check_known
from kohort.coordinator.modern.partitions import Role
from kohort.coordinator.step import Answer, Record, Reply, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.protocol.topic_partition import TopicIdPartition

log = logging.getLogger(__name__)


class ConvertibleGroups(ConsumerGroups):
    """Consumer groups, by id.

    Args:
        classic: the classic groups of the shard.
        policy: which way groups with members may be converted.
        classic_max_size: most members of a classic group.

    Attributes:
        timeouts: join and sync timeouts of classic members.
    """

    def __init__(
        self,
        environment: ConsumerEnvironment,
        wheel: TimingWheel,
        pending_steps: list[Step],
        convert: Callable[[str], list[Record] | None],
        classic: ClassicGroups,
        policy: MigrationPolicy,
        classic_max_size: int,
    ) -> None:
        super().__init__(environment, wheel, pending_steps, convert)
        self._classic = classic
        self._policy = policy
        self._classic_max_size = classic_max_size
        self.timeouts = ClassicTimeouts(wheel, self._on_classic_timeout)

    # Upgrade ----------------------------------------------------------------------------------------------------

    def _take_over(self, group_id: str) -> Draft:
        classic = self._classic.get(group_id)
        if classic is None:
            return super()._take_over(group_id)
        check_upgrade(classic, self._policy, self._settings(group_id).max_size)
        upgraded = upgrade(classic, self._environment.cluster)
        log.info("classic group becomes a consumer group group=%s members=%d", group_id, len(classic.members))
        draft = self._draft(upgraded.group)
        draft.records += upgraded.records
        draft.answers += upgraded.answers
        for member_id in upgraded.group.members:
            draft.then(self._start_session, group_id, member_id, draft.now)
        return draft

    # Downgrade --------------------------------------------------------------------------------------------------

    def _leave(self, draft: Draft, request: ConsumerGroupHeartbeatRequest, now: int) -> ConsumerGroupHeartbeatResponse:
        member_id = request.member_id
        if request.member_epoch == LEAVE_GROUP_MEMBER_EPOCH:
            check_known(draft.group, member_id, request.instance_id)
            if self._downgraded(draft, (member_id,), "it left", now):
                return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
        return super()._leave(draft, request, now)

    def _remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        """A group that has just become a classic one looks after its members' sessions itself."""
        if draft.converted is None and not self._downgraded(draft, (member_id,), why, now):
            super()._remove_member(draft, member_id, why, now)

    def remove_members(self, draft: Draft, member_ids: Collection[str], why: str, now: int) -> None:
        """Removes members that leave at once."""
        if not self._downgraded(draft, member_ids, why, now):
            for member_id in member_ids:
                super()._remove_member(draft, member_id, why, now)

    def _downgraded(self, draft: Draft, gone: Collection[str], why: str, now: int) -> bool:
        """Makes a group classic whose last members of the consumer protocol are gone, where the policy allows it."""
        if not may_downgrade(draft, gone, self._policy, self._classic_max_size):
            return False
        for member_id in gone:
            metadata = draft.group.members[member_id].metadata
            tell_removed(draft.group_id, member_id, metadata.client_id, metadata.client_host, why)
            draft.remove_member(member_id)
        self.downgrade(draft, now, "its last member of the consumer protocol is gone")
        return True

    def downgrade(self, draft: Draft, now: int, why: str | None) -> None:
        """Makes the group a classic one; `why` it is rebalanced, or None if its assignments are what they should be."""
        made = downgrade(draft, self._environment.cluster, now, rebalances=why is not None)
        log.info("consumer group becomes a classic group group=%s members=%d", draft.group_id, len(made.protocols))
        draft.records += made.records
        members = {*draft.group.members, *made.protocols}
        draft.converted = partial(self._converted, draft.group_id, members, made.protocols, why)

    def _converted(
        self, group_id: str, members: Collection[str], protocols: Mapping[str, dict[str, bytes]], why: str | None
    ) -> None:
        for member_id in members:
            self._timers.stop(group_id, member_id)
            self.timeouts.stop(group_id, member_id)
        self._classic.continue_converted(group_id, protocols, why)

    # Classic members --------------------------------------------------------------------------------------------

    def begin(self, group: ConsumerGroup, now: int) -> Draft:
        """A draft for a request of a classic member."""
        draft = self._draft(group)
        draft.now = now
        return draft

    def update(
        self, draft: Draft, update: MemberUpdate, *, assigns: bool = True
    ) -> CurrentAssignment[TopicIdPartition, Role]:
        """Takes in what a classic member says that joins; see `Heartbeats.update`."""
        return self._heartbeats.update(draft, update, assigns=assigns)

    def step(self, draft: Draft, reply: Reply, response: object, refused: Callable[[ErrorCode], object]) -> Step:
        """The step of a draft, which answers with the response; with what `refused` makes if the append fails."""
        step = self._step(draft, [Answer(reply, response)])
        step.failed = partial(self._refuse, draft, reply, refused)
        return step

    def _refuse(self, draft: Draft, reply: Reply, refused: Callable[[ErrorCode], object], code: ErrorCode) -> Step:
        return Step([], [*self._failed(draft, None, code).answers, Answer(reply, refused(code))])

    def heard_of(self, group: ConsumerGroup, member_id: str, now: int) -> None:
        """Starts a member's session timeout over."""
        self._start_session(group.group_id, member_id, now)

    def _start_session(self, group_id: str, member_id: str, now: int) -> None:
        """Starts a member's session timeout: that of its JoinGroup, if it uses the classic protocol."""
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if member is not None:
            classic = member.metadata.classic
            timeout = self._session_timeout_ms(group_id) if classic is None else classic.session_timeout_ms
            self._timers.reset_session_timeout(group_id, member_id, now, timeout)

    def _start_timeouts(self, group: ConsumerGroup, now: int) -> None:
        super()._start_timeouts(group, now)
        for member_id, member in group.members.items():
            if member.metadata.classic is not None:
                self._start_session(group.group_id, member_id, now)
                self._timers.stop_rebalance_timeout(group.group_id, member_id)

    def _on_classic_timeout(self, group_id: str, member_id: str, why: str) -> None:
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None and member.metadata.classic is not None:
            self._remove_member(self._timed_draft(group), member_id, why, self._wheel.now)

    def unload(self) -> None:
        super().unload()
        self.timeouts.stop_all()
